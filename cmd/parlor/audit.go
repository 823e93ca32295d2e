package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/parlor-games/parlor/internal/config"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/internal/wire"
	"github.com/spf13/cobra"
)

func auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "audit", Short: "Prove that no money was made or lost; exit 1 when some was", Args: cobra.NoArgs,
		Long: "audit compares, in every game and for every token, what was minted with wallets, escrow, prizes and\n" +
			"house, at one instant of the game, and sums up the games. With --game it looks at one game. With --deep\n" +
			"it also replays the ledger and recounts every wallet; nodes may go on serving. The replay starts with\n" +
			"the last checkpoint of the archive, if there is one, with --full at the first entry.",
		RunE: func(c *cobra.Command, _ []string) error {
			deep, _ := c.Flags().GetBool("deep")
			full, _ := c.Flags().GetBool("full")
			asJSON, _ := c.Flags().GetBool("json")
			game, _ := c.Flags().GetInt64("game")
			if game < 0 {
				return fmt.Errorf("--game must be the id of a game, or 0 for all")
			}
			s, err := loadSettings(c, config.ModeTool, "redis-url")
			if err != nil {
				return err
			}
			wallets, closeStore, err := openWallets(s)
			if err != nil {
				return err
			}
			defer closeStore()
			report, err := audit(c.Context(), wallets, game, deep, full)
			deep = deep || full
			switch {
			case err != nil:
				return err
			case asJSON && deep:
				err = printJSON(c.OutOrStdout(), report)
			case asJSON:
				err = printJSON(c.OutOrStdout(), report.Report)
			default:
				err = printReport(c.OutOrStdout(), report, deep)
			}
			if err == nil && !report.Balanced {
				return errReported
			}
			return err
		},
	}
	c.Flags().Bool("deep", false, "replay the ledger and recount every wallet")
	c.Flags().Bool("full", false, "as --deep, from the first entry of the ledger")
	c.Flags().Int64("game", 0, "audit one game by its id; 0 is all of them")
	c.Flags().Bool("json", false, "print the report as JSON")
	return settingFlags(c, ledgerSettings...)
}

// ledgerSettings are the settings of the commands that read ledgers.
var ledgerSettings = []string{"redis-url", "archive", "archive-endpoint", "archive-region", "config"}

// openWallets returns a service that only reads, and a function that closes its store.
func openWallets(s config.Settings) (*wallet.Service, func(), error) {
	old, err := openArchive(s)
	if err != nil {
		return nil, nil, err
	}
	db, err := redisdb.Open(s.RedisURL.Reveal())
	if err != nil {
		return nil, nil, err
	}
	return wallet.New(db, nil, wallet.Options{Archive: old}), func() { _ = db.Close() }, nil
}

// audit returns the deep report of a game, of all when game is 0, or a quick one with nothing
// recounted.
func audit(ctx context.Context, wallets *wallet.Service, game int64, deep, full bool) (wallet.DeepReport, error) {
	switch {
	case full:
		return wallets.AuditFull(ctx, game)
	case deep:
		return wallets.AuditDeep(ctx, game)
	}
	quick, err := wallets.Audit(ctx, game)
	return wallet.DeepReport{Report: quick}, err
}

func printJSON(out io.Writer, report any) error {
	text, err := wire.Marshal(report)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

func printReport(out io.Writer, r wallet.DeepReport, deep bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "token\tminted\twallets\tescrow\tprizes\thouse\tdelta\t")
	for _, t := range r.Tokens {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", t.TokenCode,
			formatAmount(t.Minted), formatAmount(t.Wallets), formatAmount(t.Escrow), formatAmount(t.Prizes),
			formatAmount(t.House), formatAmount(t.Delta))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, d := range r.Differences {
		_, _ = fmt.Fprintf(out, "game %d: %s of %s: stored %s, counted %s\n",
			d.GameID, d.Account, d.TokenCode, d.Stored, d.Counted)
	}
	if deep {
		held := ""
		if !r.HeldCounted {
			held = "; the store was too busy to sum up held stakes"
		}
		_, _ = fmt.Fprintf(out, "replayed %d ledger entries and recounted %d wallets%s\n", r.Entries, r.Wallets, held)
	}
	verdict := "balanced"
	if !r.Balanced {
		verdict = "NOT BALANCED"
	}
	_, err := fmt.Fprintln(out, verdict)
	return err
}

func formatAmount(a wallet.Amount) string { return a.Units.Decimal(a.Decimals) }
