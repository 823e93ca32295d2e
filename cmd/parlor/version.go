package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/spf13/cobra"
)

// These are linked in where Go does not know them, because the sources are no git repository:
//
//	go build -ldflags "-X main.linkedVersion=v1.0.0 -X main.linkedCommit=0169ad8…" ./cmd/parlor
var linkedVersion, linkedCommit string

// version returns the module's version and the commit, "unknown" when the build does not have them.
func version() (release, commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(linkedVersion, "unknown"), cmp.Or(linkedCommit, "unknown")
	}
	dirty := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+changes"
			}
		}
	}
	return cmp.Or(linkedVersion, info.Main.Version, "unknown"), cmp.Or(commit, linkedCommit, "unknown") + dirty
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit, Go release and the layouts that it reads", Args: cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) {
			release, commit := version()
			_, _ = fmt.Fprintf(
				c.OutOrStdout(),
				"parlor %s commit %s %s %s/%s layouts %d-%d\n",
				release,
				commit,
				runtime.Version(),
				runtime.GOOS,
				runtime.GOARCH,
				redisdb.OldestLayout(),
				redisdb.NewestLayout(),
			)
		},
	}
}
