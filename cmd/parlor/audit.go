package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/spf13/cobra"
)

func auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "audit", Args: cobra.NoArgs,
		Short: "Prove that no money was made or lost; exit 1 when some was, or may have been",
		Long: "audit compares, in every game and for every token, what was minted with wallets, escrow, prizes and\n" +
			"house, at one instant of the game, and sums up the games. With --game it looks at one game. With --deep\n" +
			"it also replays the ledger and recounts every wallet; nodes may go on serving. The replay starts with\n" +
			"the last checkpoint of the archive, if there is one, with --full at the first entry.\n\n" +
			"It also prints what nodes noticed and no operator has accepted: stopped money, stopped games and losses.\n" +
			"The exit status is 0 when the sums agree and nothing was noticed, else 1; 1 also for a store that is empty\n" +
			"or has another layout, and for a game that is not there. It is 69 when the audit could not be made, 78\n" +
			"for wrong settings.",
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
			report, err := runAudit(c.Context(), s, game, deep, full)
			deep = deep || full
			switch {
			case errors.Is(err, apierror.GameNotFound):
				return fmt.Errorf("there is no game %d: %w", game, err)
			case err != nil:
				return noVerdictError{err}
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

// books are the services that read the money of a store.
type books struct {
	ledgers *ledgerstore.Store
	wallets *wallet.Service
	audit   *audit.Service
}

// newBooks returns services on a store. players may be nil for those that only read.
func newBooks(db *redisdb.DB, ledgerArchive *archive.Archive, players wallet.Players) books {
	b := books{ledgers: ledgerstore.New(db, ledgerArchive)}
	b.wallets = wallet.New(db, players, wallet.Options{Ledgers: b.ledgers})
	b.audit = audit.New(db, b.ledgers, b.wallets)
	return b
}

// openBooks returns services that only read, and a function that closes their store. It returns a
// storeError as openToolStore does.
func openBooks(ctx context.Context, s config.Settings) (books, func(), error) {
	ledgerArchive, err := openArchive(s)
	if err != nil {
		return books{}, nil, err
	}
	db, err := openToolStore(ctx, s)
	if err != nil {
		return books{}, nil, err
	}
	return newBooks(db, ledgerArchive, nil), func() { _ = db.Close() }, nil
}

// runAudit returns the deep report of a game, of all when game is 0, or a quick one with nothing
// recounted. It reports on a store that must not be read, too. It returns game_not_found.
func runAudit(ctx context.Context, s config.Settings, game int64, deep, full bool) (audit.DeepReport, error) {
	b, closeStore, err := openBooks(ctx, s)
	var unreadable storeError
	switch {
	case errors.As(err, &unreadable):
		return audit.DeepReport{
			Report: audit.UnreadableReport(unreadable.installation), Differences: []audit.Difference{},
		}, nil
	case err != nil:
		return audit.DeepReport{}, err
	}
	defer closeStore()
	if game > 0 {
		lasts, err := b.ledgers.LastEntries(ctx)
		if err != nil {
			return audit.DeepReport{}, err
		}
		if _, exists := lasts[game]; !exists {
			return audit.DeepReport{}, apierror.GameNotFound
		}
	}
	switch {
	case full:
		return b.audit.AuditFromFirstEntry(ctx, game)
	case deep:
		return b.audit.AuditDeep(ctx, game)
	}
	quick, err := b.audit.Audit(ctx, game)
	return audit.DeepReport{Report: quick}, err
}

func printJSON(out io.Writer, report any) error {
	text, err := wire.Marshal(report)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

func printReport(out io.Writer, r audit.DeepReport, deep bool) error {
	if !r.IsUnreadable() {
		if err := printTotals(out, r, deep); err != nil {
			return err
		}
	}
	for _, stopped := range r.Stopped {
		_, _ = fmt.Fprintln(out, describeStopped(stopped))
	}
	_, err := fmt.Fprintln(out, verdictOf(&r.Report))
	return err
}

func printTotals(out io.Writer, r audit.DeepReport, deep bool) error {
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
	return nil
}

func describeStopped(s audit.StopReason) string {
	switch {
	case s.Cause == audit.LossCause:
		return "lost: " + s.Reason
	case s.GameID != 0:
		return fmt.Sprintf("game %d is stopped (%s) since %s: %s", s.GameID, s.Cause, wire.FormatTime(s.At), s.Reason)
	}
	return s.Reason
}

// verdictOf returns the last line of a report.
func verdictOf(r *audit.Report) string {
	switch {
	case r.Balanced:
		return "balanced"
	case r.IsUnreadable():
		return "NOT AUDITED"
	case !r.SumsAgree:
		return "NOT BALANCED"
	case r.HasOnlyLosses():
		return "LOST: the sums of what is left agree, and no operator has accepted the loss"
	}
	return "STOPPED: the sums agree, and no operator has accepted what stopped the money"
}

func formatAmount(a wallet.Amount) string { return a.Units.Decimal(a.Decimals) }
