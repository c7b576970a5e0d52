# SPDX-License-Identifier: MIT
# What it takes to build and run sbxfs on Debian 12, Ubuntu 24.04 and their like. Sourced by tests/run and contrib/quickstart.

# What is looked for, and the package that has it: a command, or a pkg-config module after a colon.
sbxfs_needs='
cc build-essential
pkg-config pkg-config
meson meson
ninja ninja-build
git git
python3 python3
fusermount3 fuse3
bwrap bubblewrap
:fuse3 libfuse3-dev
:sqlite3 libsqlite3-dev
:libpcre2-8 libpcre2-dev
:inih libinih-dev
:libgit2 libgit2-dev
:glib-2.0 libglib2.0-dev
:json-glib-1.0 libjson-glib-dev
:libseccomp libseccomp-dev
:ncursesw libncurses-dev
:cmocka libcmocka-dev
'
# What only the tests need: sourced by tests/run, which adds it.
sbxfs_tests_need='
tmux tmux
curl curl
mkfs.ext4 e2fsprogs
mkfs.xfs xfsprogs
'

# packages_missing - prints the packages that are not there, on one line
packages_missing() {
	local want package missing=
	while read -r want package; do
		case $want in
		'') continue ;;
		:*) command -v pkg-config >/dev/null && pkg-config --exists "${want#:}" && continue ;;
		*) PATH=$PATH:/usr/sbin:/sbin command -v "$want" >/dev/null && continue ;;
		esac
		missing="$missing $package"
	done <<<"$sbxfs_needs"
	echo "${missing# }"
}

# packages_install PACKAGE... - as root, by apt; the output goes to standard error
packages_install() {
	{
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
	} >&2
}

# fuse_ready - a way to mount, or one line that says what is in the way
fuse_ready() {
	if [ ! -c /dev/fuse ] && [ "$(id -u)" = 0 ]; then
		modprobe fuse 2>/dev/null || true
		[ -c /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229 2>/dev/null || true
	fi
	[ -c /dev/fuse ] || { echo "no /dev/fuse: load the kernel module (modprobe fuse), or give the container that device and CAP_SYS_ADMIN"; return 1; }
	[ -r /dev/fuse ] && [ -w /dev/fuse ] || { echo "/dev/fuse is not for this user: chmod 666 /dev/fuse"; return 1; }
	( : <>/dev/fuse ) 2>/dev/null || { echo "/dev/fuse cannot be opened here: give the container that device and CAP_SYS_ADMIN"; return 1; }
	[ "$(id -u)" = 0 ] && return
	local helper
	helper=$(command -v fusermount3) || { echo "no fusermount3: install fuse3"; return 1; }
	[ -u "$helper" ] || { echo "$helper is not set-user-ID root: chmod u+s $helper"; return 1; }
}
