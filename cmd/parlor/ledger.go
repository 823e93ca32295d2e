package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

func ledgerCommand() *cobra.Command {
	c := &cobra.Command{Use: "ledger", Short: "Export, verify and follow the ledger, with what is in the archive"}
	c.AddCommand(ledgerExportCommand(), ledgerVerifyCommand(), ledgerTailCommand(), ledgerRewindCommand())
	return c
}

// withBooks opens the store and the archive of the settings and runs a command on them.
func withBooks(c *cobra.Command, run func(ctx context.Context, b books) error) error {
	s, err := loadSettings(c, config.ModeTool, "redis-url")
	if err != nil {
		return err
	}
	b, closeStore, err := openBooks(c.Context(), s)
	if err != nil {
		return err
	}
	defer closeStore()
	return run(c.Context(), b)
}

// pickGames returns the game, or all games when it is 0.
func pickGames(ctx context.Context, ledgers *ledgerstore.Store, game int64) ([]int64, error) {
	if game < 0 {
		return nil, errors.New("--game must be the id of a game, or 0 for all")
	}
	return ledgers.Games(ctx, game)
}

// newProgress returns a function that shows how much of a total is done: as a bar where stderr is a
// terminal, else nowhere.
func newProgress(stderr io.Writer, total int64, what string) (show func(done int64), end func()) {
	file, ok := stderr.(*os.File)
	if ok {
		info, err := file.Stat()
		ok = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if !ok {
		return func(int64) {}, func() {}
	}
	bar := progressbar.NewOptions64(max(total, 1), progressbar.OptionSetWriter(stderr),
		progressbar.OptionSetDescription(what), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	return func(done int64) { _ = bar.Set64(min(done, total)) }, func() { _ = bar.Finish() }
}

// csvHeader names the columns of an export: one row for each posting.
var csvHeader = []string{"gameId", "id", "at", "tokenId", "reason", "ref", "account", "userId", "deltaAmount"}

func ledgerExportCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "export", Short: "Print the ledger of a game, one entry a line", Args: cobra.NoArgs,
		Long: "export prints the entries of a game's ledger, the oldest first, as JSON objects, one a line, or as CSV,\n" +
			"one posting a row. Amounts in deltaAmount are minor units. What has left the store is read from the archive.",
		Example: "  parlor ledger export --game 1 --from 1 >ledger.jsonl",
		RunE: func(c *cobra.Command, _ []string) error {
			game, _ := c.Flags().GetInt64("game")
			from, _ := c.Flags().GetInt64("from")
			to, _ := c.Flags().GetInt64("to")
			asCSV, _ := c.Flags().GetBool("csv")
			if game < 1 || from < 1 || to < 0 {
				return errors.New("export needs --game, and numbers of entries from 1")
			}
			return withBooks(c, func(ctx context.Context, b books) error {
				last, err := b.ledgers.LastEntry(ctx, game)
				if err != nil {
					return err
				}
				if to == 0 || to > last {
					to = last
				}
				out := bufio.NewWriter(c.OutOrStdout())
				write := newEntryWriter(out, asCSV)
				show, end := newProgress(c.ErrOrStderr(), to-from+1, "entries")
				err = b.wallets.EachEntry(ctx, game, from, to, func(e wallet.Entry) error {
					show(e.ID - from + 1)
					return write(wallet.ExportedEntry{GameID: game, Entry: e})
				})
				end()
				return errors.Join(err, out.Flush())
			})
		},
	}
	c.Flags().Int64("game", 0, "the game, by its id")
	c.Flags().Int64("from", 1, "number of the first entry")
	c.Flags().Int64("to", 0, "number of the last entry; 0 is the newest")
	c.Flags().Bool("csv", false, "print CSV")
	return settingFlags(c, ledgerSettings...)
}

// newEntryWriter returns a function that prints an entry.
func newEntryWriter(out io.Writer, asCSV bool) func(wallet.ExportedEntry) error {
	if !asCSV {
		return func(e wallet.ExportedEntry) error { return printJSON(out, e) }
	}
	w := csv.NewWriter(out)
	row := csvHeader
	return func(e wallet.ExportedEntry) error {
		if row != nil {
			_ = w.Write(row) // Error returns it
			row = nil
		}
		start := []string{
			strconv.FormatInt(e.GameID, 10), strconv.FormatInt(e.ID, 10), e.At.Format(wire.TimeLayout), e.TokenCode, e.Reason,
			e.Ref,
		}
		for _, p := range e.Postings {
			user := ""
			if p.UserID != nil {
				user = strconv.FormatInt(*p.UserID, 10)
			}
			_ = w.Write(append(start[:len(start):len(start)], p.Account, user, p.Units.String()))
		}
		w.Flush()
		return w.Error()
	}
}

func ledgerVerifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "verify", Short: "Prove that the ledger is whole, in the archive and in the store; exit 1 when it is not",
		Args: cobra.NoArgs,
		Long: "verify reads the whole ledger. It checks that the segments of the archive are a chain which ends where the\n" +
			"store goes on, that every entry sums to zero, that each checkpoint is what the entries before it add up to,\n" +
			"and that the totals in the store are the sums of all entries. It also reads the old lines of every player.\n" +
			"Nodes may go on serving. It prints one JSON object for each game.",
		RunE: func(c *cobra.Command, _ []string) error {
			game, _ := c.Flags().GetInt64("game")
			return withBooks(c, func(ctx context.Context, b books) error {
				games, err := pickGames(ctx, b.ledgers, game)
				if err != nil {
					return err
				}
				isWhole := true
				for _, id := range games {
					last, err := b.ledgers.LastEntry(ctx, id)
					if err != nil {
						return err
					}
					show, end := newProgress(c.ErrOrStderr(), last, fmt.Sprintf("game %d", id))
					report, err := b.audit.VerifyLedger(ctx, id, show)
					end()
					if err == nil {
						err = printJSON(c.OutOrStdout(), report)
					}
					if err != nil {
						return err
					}
					isWhole = isWhole && len(report.Problems) == 0
				}
				if !isWhole {
					return errReported
				}
				return nil
			})
		},
	}
	c.Flags().Int64("game", 0, "verify one game by its id; 0 is all of them")
	return settingFlags(c, ledgerSettings...)
}

// tailPollInterval is the time between two reads of the ledger.
const tailPollInterval = time.Second

func ledgerTailCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "tail", Short: "Print the entries of a game's ledger as they are written, one JSON object a line",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			game, _ := c.Flags().GetInt64("game")
			lines, _ := c.Flags().GetInt64("lines")
			if game < 1 || lines < 0 {
				return errors.New("tail needs --game, and a number of lines from 0")
			}
			return withBooks(c, func(ctx context.Context, b books) error {
				err := followLedger(ctx, b, game, lines, c.OutOrStdout())
				if ctx.Err() != nil {
					return nil // stopped
				}
				return err
			})
		},
	}
	c.Flags().Int64("game", 0, "the game, by its id")
	c.Flags().Int64("lines", 10, "how many of the newest entries to start with")
	return settingFlags(c, ledgerSettings...)
}

// followLedger prints the newest entries, and then each new one, until ctx ends.
func followLedger(ctx context.Context, b books, game, lines int64, out io.Writer) error {
	tick := time.NewTicker(tailPollInterval)
	defer tick.Stop()
	for next := int64(-1); ; {
		last, err := b.ledgers.LastEntry(ctx, game)
		if err != nil {
			return err
		}
		if next < 0 {
			next = max(1, last-lines+1)
		}
		if last < next-1 {
			return fmt.Errorf("the ledger ends with entry %d and had %d: the store has lost its newest history", last, next-1)
		}
		err = b.wallets.EachEntry(ctx, game, next, last, func(e wallet.Entry) error {
			next = e.ID + 1
			return printJSON(out, wallet.ExportedEntry{GameID: game, Entry: e})
		})
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
