#!/bin/sh
# usage: tests/run/calls.sh BUILD     What libblk asks of the system is listed: each such call fails in test_system_faults, or the reason why not is here.
. "$(dirname "$0")/../lib.sh"
build=$1
if ! command -v nm >/dev/null; then
	skip 1
	finish
fi
failing=$(sed -n '/^SYSTEM_CALLS := /,/[^\\]$/{s/^SYSTEM_CALLS := //;s/\\$//;p}' Makefile)
# Made to fail by other tests: the compiler's library is not there or is another (test_image, run-blkrun); malloc (test_memory_faults).
elsewhere="dlopen dlsym dlinfo dladdr1 dlclose dlerror malloc calloc realloc strdup strndup"
# On one's own memory, threads or signals, with arguments that are right: no way to fail that a program could meet.
sure="clock_gettime closedir dirfd fclose fegetenv fegetround fesetenv fesetround fgets fwrite getenv geteuid getpid getrlimit kill munmap nanosleep
 pthread_cond_broadcast pthread_cond_destroy pthread_cond_init pthread_cond_signal pthread_cond_wait pthread_join pthread_key_create
 pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock pthread_once pthread_rwlock_destroy pthread_rwlock_init
 pthread_rwlock_rdlock pthread_rwlock_unlock pthread_rwlock_wrlock pthread_setspecific pthread_sigmask raise readdir sched_yield sigaction
 siglongjmp sysconf time uname waitpid posix_spawn_file_actions_adddup2 posix_spawn_file_actions_addopen
 posix_spawn_file_actions_destroy posix_spawnattr_destroy posix_spawnattr_setflags posix_spawnattr_setsigdefault
 posix_spawnattr_setsigmask newlocale uselocale freelocale __getdelim __sched_cpucount __register_atfork __sigsetjmp __tls_get_addr
 sigaddset sigemptyset sigfillset sigismember malloc_usable_size __assert_fail"
# Of libm, and of libc what looks at memory and numbers alone.
pure='^(_ITM_.*|__cxa_finalize|__gmon_start__|__ctype.*|__errno_location|__isoc99_sscanf|(__)?environ|stdout|mem.*|str[a-z_]*|qsort|free|v?sn?printf
|a?cosf?|a?sinf?|sincosf?|a?tanh?f?|ceilf?|erff?|exp.*|fabsf?|floorf?|fmaf?|fmodf?|frexp|ldexpf?|log.*|nearbyintf?|powf?|rintf?|round.*|sqrtf?|truncf?|__.*_chk|__.*san_.*|__ubsan.*|__asan.*)$'
unknown=
for name in $(nm -D -u "$build/lib/libblk.so" | awk '{print $2}' | sed 's/@.*//' | sort -u); do
	case " $(echo $failing $elsewhere $sure) " in *" $name "*) continue ;; esac
	echo "$name" | grep -Eq "$(echo "$pure" | tr -d '\n')" || unknown="$unknown $name"
done
if nm "$build/lib/libblk.so" | grep -q __gcov_; then
	skip 1 # what counts the lines has calls of its own
else
	[ -z "$unknown" ] && ok || bad "libblk calls what no list knows:$unknown (Makefile: SYSTEM_CALLS, and this file)"
fi
for name in $failing; do grep -q "[( ]$name[,(]" tests/unit/test_system_faults.c && ok || bad "test_system_faults does not fail $name"; done
finish
