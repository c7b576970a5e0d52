/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * rpc - the answering side of JSON-RPC 2.0, one message on each line
 *
 * Who speaks to us may send anything: lines are bounded, a message is checked before json-glib sees it (which takes
 * what is no JSON, and whose recursion would take all of the stack), and each fault is an answer, never an end. Requests
 * are answered one after the other, notifications are not answered, answers are ignored since nothing is asked. A batch
 * is answered with a batch, as JSON-RPC has it, though newer users of it have given that up.
 */

#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdio.h>

#define RPC_LINE_MAX (1024 * 1024)
#define RPC_DEPTH_MAX 64

#define RPC_ERROR (rpc_error_quark())
GQuark rpc_error_quark(void);

enum rpc_error { /* the codes of JSON-RPC 2.0, as they are sent */
		 RPC_ERROR_PARSE = -32700,
		 RPC_ERROR_REQUEST = -32600,
		 RPC_ERROR_METHOD = -32601,
		 RPC_ERROR_PARAMS = -32602,
		 RPC_ERROR_INTERNAL = -32603,
};

/*
 * An answer, owned by the caller; or NULL with @error set, whose code is sent when its domain is RPC_ERROR, else
 * RPC_ERROR_INTERNAL. @params: an object, empty when there were none; borrowed. Also called for notifications; what it
 * returns for them goes nowhere.
 */
typedef JsonNode *(*rpc_handler)(const char *method, JsonObject *params, void *user, GError **error);

/* rpc_answer() - to one line without its end: the line to send, without its end; NULL = none. Caller frees. */
char *rpc_answer(const char *line, size_t size, rpc_handler handler, void *user);

/* rpc_serve() - until the end of @in, or until nobody reads @out any more. */
void rpc_serve(FILE *in, FILE *out, rpc_handler handler, void *user);
