#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# MPICH's own tests of MPI, from the distribution's source package, built in the cache for each MPI
# that is installed; build/mpi-suite/MPI links there. What an MPI cannot build is left out.
# usage: mpi-suite.sh     (a few minutes, once)
set -eu
. "$(dirname -- "$0")/common.sh"

DIR=$MUSTER_CACHE/mpi-suite
FOLDERS="attr comm coll errhan errors/coll errors/comm errors/topo group init topo threads/coll threads/comm"

fetch() {
	rm -rf "$DIR/download" && mkdir -p "$DIR/download/source"
	(cd "$DIR/download" && with_log "$DIR/fetch.log" "fetching the source of MPICH $version (22 MB)" \
		apt-get -q source --download-only "mpich=$version")
	tar -xf "$DIR/download"/mpich_*.orig.tar.* -C "$DIR/download/source" --strip-components=1 \
		--wildcards '*/test/mpi' '*/confdb' '*/maint/version.m4'
	mkdir -p "$DIR/$version"
	mv "$DIR/download/source/test/mpi" "$DIR/$version/source"
	rm -rf "$DIR/download"
}

# usage: configure MPI, in the folder where it is built
configure() {
	../source/configure "MPICC=mpicc.$1" "CC=mpicc.$1" --disable-fortran --disable-cxx --disable-spawn \
		--disable-rma --disable-romio --disable-dependency-tracking
}

build() {
	make -C dtpools -j "$(nproc)"
	make -C util -j "$(nproc)"
	for folder in $FOLDERS; do
		make -k -C "$folder" -j "$(nproc)" || :
	done
	touch built
}

# usage: of_mpi MPI
of_mpi() {
	mkdir -p "$DIR/$version/$1"
	cd "$DIR/$version/$1"
	[ -f config.status ] || with_log "$DIR/configure-$1.log" "configuring tests of MPI for $1" configure "$1"
	[ -f built ] || with_log "$DIR/build-$1.log" "building tests of MPI for $1" build
	ln -sfn "$PWD" "$MUSTER_ROOT/build/mpi-suite/$1"
}

need apt-get tar make xz
cache_lock mpi-suite
private_apt
version=$(apt-cache showsrc mpich | sed -n 's/^Version: //p' | sort -V | tail -n 1)
[ -n "$version" ] || die "no source of mpich among the package sources"
[ -d "$DIR/$version/source" ] || fetch
mkdir -p "$MUSTER_ROOT/build/mpi-suite"
for mpi in openmpi mpich; do
	! command -v "mpicc.$mpi" >/dev/null || of_mpi "$mpi"
done
