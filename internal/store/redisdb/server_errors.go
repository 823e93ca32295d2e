package redisdb

import (
	"errors"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/redis/go-redis/v9"
)

// serverErrors lists, by their first words, the errors of a server that cannot do a command, or not
// for this node. Its operator must act; then the same request succeeds. Redis and Valkey share the
// first words but not the sentences. The entries that begin with ERR are errors without a word of
// their own.
var serverErrors = []struct {
	start  string
	result *apierror.Error
}{
	{"LOADING", apierror.StoreUnavailable},
	{"BUSY", apierror.StoreUnavailable},        // a script runs for too long
	{"UNKILLABLE", apierror.StoreUnavailable},  // and has written
	{"MASTERDOWN", apierror.StoreUnavailable},  // a replica without its master
	{"READONLY", apierror.StoreUnavailable},    // a replica
	{"REDIRECT", apierror.StoreUnavailable},    // Valkey 8: a master that became a replica
	{"UNBLOCKED", apierror.StoreUnavailable},   // the same, of a command that waited
	{"NOREPLICAS", apierror.StoreUnavailable},  // min-replicas-to-write
	{"MISCONF", apierror.StoreUnavailable},     // it cannot write to its disk
	{"CLUSTERDOWN", apierror.StoreUnavailable}, // of a Cluster, as the next three
	{"TRYAGAIN", apierror.StoreUnavailable},
	{"MOVED", apierror.StoreUnavailable},
	{"ASK", apierror.StoreUnavailable},
	{"NOAUTH", apierror.StoreUnavailable},
	{"WRONGPASS", apierror.StoreUnavailable},
	{"NOPERM", apierror.StoreUnavailable},
	{"DENIED", apierror.StoreUnavailable}, // protected-mode
	{"OOM", apierror.StoreFull},
	{"EXECABORT", apierror.StoreUnavailable}, // a transaction of which a command was refused; see serverErrorCode

	// A server that wants a password refuses a command of more than ten arguments before it reads it.
	{"ERR Protocol error", apierror.StoreUnavailable},
	{"ERR max number of clients", apierror.StoreUnavailable},
	{"ERR AUTH <password> called without any password configured", apierror.StoreUnavailable},
	{"ERR operation not permitted", apierror.StoreUnavailable},
	// Of commands in a script. From Redis 7.2 on and in Valkey the first is "NOPERM ACL failure".
	{"ERR The user executing the script can't", apierror.StoreUnavailable},
	{"ERR Script attempted to execute a command while the cluster is down", apierror.StoreUnavailable},
	{"ERR Script attempted to execute a write command while the cluster is down", apierror.StoreUnavailable},
	{"ERR Script attempted to access a non local key in a cluster node", apierror.StoreUnavailable},

	// Of go-redis itself, which has no value to compare with.
	{"redis: all sentinels", apierror.StoreUnavailable},
	{"redis: cluster has no nodes", apierror.StoreUnavailable},
}

// scriptKilled is in the error of a script that an operator has ended, which had not written.
const scriptKilled = "Script killed by user"

// serverErrorCode returns store_unavailable or store_full for an error by which a server says that
// it cannot do the command. It returns nil for any other error.
func serverErrorCode(err error) *apierror.Error {
	text := err.Error()
	if ofServer := redis.Error(nil); errors.As(err, &ofServer) { // without what is wrapped around it
		text = ofServer.Error()
	}
	if strings.HasPrefix(text, "EXECABORT") && strings.Contains(text, ": OOM ") {
		return apierror.StoreFull
	}
	for _, r := range serverErrors {
		if rest, ok := strings.CutPrefix(text, r.start); ok && isEndOfWord(rest) {
			return r.result
		}
	}
	if strings.Contains(text, scriptKilled) {
		return apierror.StoreUnavailable
	}
	return nil
}

// isEndOfWord reports whether rest begins after a complete word, so that BUSYGROUP is not taken for
// BUSY. In the error of a script a colon may follow the word.
func isEndOfWord(rest string) bool {
	return rest == "" || !('A' <= rest[0] && rest[0] <= 'Z')
}

// serverErrorWord returns the first word of an error in serverErrors, or "" for other errors.
func serverErrorWord(err error) string {
	if serverErrorCode(err) == nil {
		return ""
	}
	text := err.Error()
	if ofServer := redis.Error(nil); errors.As(err, &ofServer) {
		text = ofServer.Error()
	}
	word, _, _ := strings.Cut(text, " ")
	return strings.TrimSuffix(word, ":")
}
