package redistest

// ServerErrors are the exact error texts of servers that cannot do a command, as Redis from 7.0 and
// Valkey 8 return them: to a plain command, and with the text that a script adds.
var ServerErrors = []string{
	"LOADING Redis is loading the dataset in memory",
	"LOADING Valkey is loading the dataset in memory",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"BUSY Valkey is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
	"UNKILLABLE Sorry the script already executed write commands against the dataset.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'. script: 1, on @user_script:1.",
	"READONLY You can't write against a read only replica.",
	"READONLY You can't write against a read only replica. script: 1, on @user_script:1.",
	"READONLY Can not run script with write flag on readonly replica.",
	"REDIRECT 127.0.0.1:6380",
	"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
	"NOREPLICAS Not enough good replicas to write.",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"MISCONF Valkey is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"MISCONF Errors writing to the AOF file: No space left on device",
	"CLUSTERDOWN The cluster is down",
	"CLUSTERDOWN Hash slot not served",
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"NOAUTH Authentication required.",
	"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> " +
		"<pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
	"WRONGPASS invalid username-password pair or user is disabled.",
	"NOPERM this user has no permissions to run the 'set' command",
	"NOPERM User parlor has no permissions to run the 'set' command",
	"NOPERM No permissions to access a key",
	"NOPERM ACL failure in script: User parlor has no permissions to run the 'set' command",
	"DENIED Redis is running in protected mode because protected mode is enabled and no password is set.",
	"OOM command not allowed when used memory > 'maxmemory'.",
	"OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
	"EXECABORT Transaction discarded because of previous errors.",
	"EXECABORT Transaction discarded because of: NOREPLICAS Not enough good replicas to write.",
	"EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.",
	"ERR Protocol error: unauthenticated multibulk length",
	"ERR Protocol error: unauthenticated bulk length",
	"ERR max number of clients reached",
	"ERR max number of clients + cluster connections reached",
	"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration " +
		"is correct?",
	"ERR operation not permitted",
	"ERR The user executing the script can't run this command or subcommand script: 1, on @user_script:1.",
	"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
	"ERR Script attempted to execute a command while the cluster is down",
	"ERR Script attempted to execute a write command while the cluster is down and readonly",
	"ERR Script attempted to access a non local key in a cluster node script: 1, on @user_script:1.",
	"ERR Error running script: Script killed by user with SCRIPT KILL... script: 1, on @user_script:1.",
}

// ClusterErrors are those of a master that no longer has a slot, which a client of a single
// server never gets.
var ClusterErrors = []string{"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381"}
