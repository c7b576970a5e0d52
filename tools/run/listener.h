/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * listener - system calls that wait until this process has looked at them (seccomp_unotify(2))
 *
 * The filter is laid on the process that becomes bwrap, before its exec, and everything that comes of it inherits it: nothing of ours
 * is needed inside, and bwrap's own filter stays what it is. The calls are let through as they are. When the
 * listener is closed, however that comes, the kernel answers them with ENOSYS: who cannot be watched starts nothing.
 *
 * Life: listener_new(), fork(2); in the child listener_enter(); in the parent listener_take(), then its descriptor.
 */

#include <glib.h>
#include <linux/seccomp.h>
#include <stdbool.h>

struct listener;

/* listener_new() - of @calls, ended by NULL. */
struct listener *listener_new(const char *const *calls, GError **error);
/*
 * listener_enter() - in the child; async-signal-safe. Sets no_new_privs. False, after telling the parent, where the kernel does not
 * do it: it may be too old, or a listener of somebody else's be there already, of which there can be only one.
 */
bool listener_enter(const struct listener *l);
/* listener_take() - in the parent: waits for the child. EXIT_PLATFORM with the remedy when the child could not enter. */
bool listener_take(struct listener *l, GError **error);
/* listener_fd() - readable when a call waits, EPOLLHUP when nobody is left who could make one. */
int listener_fd(const struct listener *l);

struct listener_call {
	struct seccomp_notif request;
	char more[256]; /* of a newer kernel */
};

/* listener_receive() - the next call; false when it is gone already. */
bool listener_receive(const struct listener *l, struct listener_call *ret);
/* listener_is_waiting() - whether what was read of the caller in the meantime was really read of it. */
bool listener_is_waiting(const struct listener *l, const struct listener_call *call);
/* listener_answer() - lets the call go on, or refuses it with @error (an errno). */
void listener_answer(const struct listener *l, const struct listener_call *call, int error);
void listener_free(struct listener *l);
