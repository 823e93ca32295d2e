package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version returns the module's version and the commit, "unknown" when the build does not have them.
func version() (release, commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown", "unknown"
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
	return cmp.Or(info.Main.Version, "unknown"), cmp.Or(commit, "unknown") + dirty
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit and Go release", Args: cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) {
			release, commit := version()
			_, _ = fmt.Fprintf(
				c.OutOrStdout(),
				"parlor %s commit %s %s %s/%s\n",
				release,
				commit,
				runtime.Version(),
				runtime.GOOS,
				runtime.GOARCH,
			)
		},
	}
}
