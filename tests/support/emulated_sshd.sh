# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# An sshd on each emulated host, for scripts that run wanlink and source this. All hosts have one key, and whoever runs the
# script has one to all of them.

no_sshd() { # says why there can be none; fails where there can
  if [ "$(id -u)" != 0 ]; then
    echo "sshd of an emulated host needs root"
  elif [ ! -x /usr/sbin/sshd ]; then
    echo "there is no sshd here; openssh-server has it"
  else
    return 1
  fi
}

# Where sshd of the superuser wants a directory. Tests that run at the same time share one, whose mode says that it is
# theirs, and whoever is the last removes it.
make_sshd_directory() {
  until exec {sshd_directory}</run/sshd && flock -s "$sshd_directory" &&
    [ /run/sshd -ef "/proc/self/fd/$sshd_directory" ]; do
    mkdir -m 711 /run/sshd || true
  done 2>/dev/null
}
remove_sshd_directory() {
  [ -z "${sshd_directory:-}" ] || [ "$(stat -c %a /run/sshd)" != 711 ] || ! flock -n -x "$sshd_directory" ||
    rmdir /run/sshd
}

make_ssh_keys() { # make_ssh_keys DIRECTORY: the keys, and ssh_config, which lets ssh in without a question
  ssh-keygen -q -t ed25519 -N '' -f "$1/host_key"
  ssh-keygen -q -t ed25519 -N '' -f "$1/user_key"
  cat >"$1/ssh_config" <<END
Host *
  IdentityFile $1/user_key
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
END
}

sshd_settings() { # sshd_settings DIRECTORY NAME=VALUE...: of a host whose sessions have these variables
  cat <<END
ListenAddress 0.0.0.0
HostKey $1/host_key
PidFile none
AuthorizedKeysFile $1/user_key.pub
StrictModes no
UsePAM no
Subsystem sftp internal-sftp
SetEnv ${*:2}
END
}
