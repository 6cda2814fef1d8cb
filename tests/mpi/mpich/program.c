// SPDX-License-Identifier: BSD-3-Clause
int MPI_Init(int* count, char*** words);

int main(int count, char** words) {
  return MPI_Init(&count, &words);
}
