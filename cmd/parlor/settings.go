package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// settingFlags adds the flags of the named settings to a command, those of all settings without
// names.
func settingFlags(c *cobra.Command, names ...string) *cobra.Command {
	for _, e := range config.EntriesWithoutValues() {
		if len(names) == 0 || slices.Contains(names, e.Name) {
			c.Flags().String(e.Name, "", e.Doc)
			if e.Secret && e.Name != "redis-url" {
				_ = c.Flags().MarkHidden(e.Name) // it is refused, with the variable to set instead
			}
		}
	}
	return c
}

// loadSettings reads the settings from flags, environment and file. required are the settings that
// a tool needs.
func loadSettings(c *cobra.Command, mode config.Mode, required ...string) (config.Settings, error) {
	flags := map[string]string{}
	known := config.EntriesWithoutValues()
	c.Flags().Visit(func(f *pflag.Flag) {
		if slices.ContainsFunc(known, func(e config.Entry) bool { return e.Name == f.Name }) {
			flags[f.Name] = f.Value.String()
		}
	})
	s, err := config.Load(mode, config.Sources{
		Flags: flags, Environ: os.Environ(), ReadFile: os.ReadFile,
		DecodeFile: func(text []byte) (file map[string]any, err error) { return file, yaml.Unmarshal(text, &file) },
		ExtraChecks: map[string]func(string) error{
			"redis-url": checkStoreURL, "backup-url": checkStoreURL,
			"first-game-key": games.CheckFirstServerKey,
			"archive": func(address string) error {
				_, err := archive.Open(address, archive.S3Options{}) // only parses the address
				return err
			},
			"archive-endpoint": func(endpoint string) error {
				_, err := archive.Open("s3://bucket", archive.S3Options{Endpoint: endpoint})
				return err
			},
		},
	})
	err = s.Require(err, required...)
	if mode == config.ModeServe {
		err = checkOpenFiles(s.MaxSockets, err)
	}
	return s, err
}

// reservedFiles is how many open files a node needs in addition to its sockets: connections to the
// store, connections of requests, and files.
const reservedFiles = 500

// checkOpenFiles adds an error to err if the process's limit of open files is too low for so many
// sockets.
func checkOpenFiles(sockets int, err error) error {
	limit, known := openFileLimit()
	if needed := uint64(sockets) + reservedFiles; known && limit < needed {
		fix := "start the node with more: LimitNOFILE= of systemd, ulimits of a container, ulimit -n of a shell"
		if limit > reservedFiles {
			fix += fmt.Sprintf("; or set %d at most", limit-reservedFiles)
		}
		var errs config.SettingErrors
		errors.As(err, &errs)
		return append(errs, config.SettingError{
			Setting: "PARLOR_MAX_SOCKETS",
			Problem: fmt.Sprintf("%d needs %d open files, and this process may have %d; %s", sockets, needed, limit, fix),
		})
	}
	return err
}

// checkStoreURL only parses the address.
func checkStoreURL(url string) error {
	db, err := redisdb.Open(url)
	if err == nil {
		_ = db.Close()
	}
	return err
}

// promiseTimeout bounds how long `parlor config show` waits for a store.
const promiseTimeout = 2 * time.Second

// describeDurability returns what an acknowledged change survives now, for anyone to read.
func describeDurability(ctx context.Context, s config.Settings) string {
	ctx, cancel := context.WithTimeout(ctx, promiseTimeout)
	defer cancel()
	db, err := redisdb.Open(s.RedisURL.Reveal())
	if err != nil {
		return "not known, " + err.Error()
	}
	defer func() { _ = db.Close() }()
	kept, err := db.ReadPromise(ctx, requirements(s))
	switch {
	case err != nil:
		return "not known, the store cannot be read"
	case kept.IsWeakerThan(redisdb.Promise(s.Durability)):
		return string(kept) + ", less than " + s.Durability
	}
	return string(kept)
}

func configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check and show settings"}
	check := &cobra.Command{
		Use: "check", Args: cobra.NoArgs,
		Short: "Report every setting that parlor serve rejects, and exit 78; 0 when there is none",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.ModeServe)
			for _, warning := range s.Warnings() {
				c.PrintErrln("warning: " + warning)
			}
			if err == nil {
				c.Println("the settings are valid")
			}
			return err
		},
	}
	show := &cobra.Command{
		Use: "show", Args: cobra.NoArgs,
		Short: "Print every setting of parlor serve with its origin, and the durability that holds now; secrets are " +
			"redacted",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.ModeServe)
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, e := range s.Entries() {
				value := e.Value
				if value == "" {
					value = "-"
				}
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", e.Env, value, e.Origin)
			}
			err = errors.Join(err, w.Flush())
			if address := s.RedisURL.Reveal(); address != "" {
				c.Println("durability that holds now: " + describeDurability(c.Context(), s))
			}
			return err
		},
	}
	env := &cobra.Command{
		Use: "env", Args: cobra.NoArgs,
		Short: "Print every variable with what it means and its default, as the start of an environment file",
		RunE: func(c *cobra.Command, _ []string) error {
			text := config.ExampleEnv()
			if markdown, _ := c.Flags().GetBool("markdown"); markdown {
				text = config.ReferenceMarkdown()
			}
			_, err := strings.NewReader(text).WriteTo(c.OutOrStdout())
			return err
		},
	}
	env.Flags().Bool("markdown", false, "print docs/settings.md instead")
	c.AddCommand(settingFlags(check), settingFlags(show), env)
	return c
}
