package wallet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// tokenTotals are the totals of one token in minor units: running ones, or recounted ones.
type tokenTotals map[string]Units

// The totals.
const (
	totalMinted  = keys.TotalMinted
	totalWallets = keys.TotalWallets
	totalEscrow  = keys.TotalEscrow
	totalHouse   = keys.TotalHouse
)

// totals are the running totals at one instant.
type totals struct {
	sequence int64                  // number of the last ledger entry
	tokens   map[string]tokenTotals // by code
}

func (s store) readTotals(ctx context.Context) (totals, error) {
	hash, err := s.db.Client.HGetAll(ctx, keys.Totals()).Result()
	if err != nil {
		return totals{}, redisdb.WrapError("read the totals", err)
	}
	f := redisdb.NewFields("the totals", hash)
	t := totals{sequence: f.Int(keys.TotalsSequenceField), tokens: map[string]tokenTotals{}}
	for field := range hash {
		total, code, ok := keys.ParseTotalField(field)
		if !ok {
			continue
		}
		if t.tokens[code] == nil {
			t.tokens[code] = tokenTotals{}
		}
		t.tokens[code][total] = Units(f.Int(field))
	}
	return t, f.Err()
}

const (
	scanStartCursor = "0" // also the cursor after the last page
	scanPageSize    = 1000
)

// scanWallets returns the user ids of some wallets and the cursor of the next ones. A user may come
// twice.
func (s store) scanWallets(ctx context.Context, cursor string) (userIDs []string, next string, err error) {
	reply, err := s.db.RunScript(ctx, scripts.WalletScan, []string{keys.Totals()},
		cursor, keys.WalletPrefix(), scanPageSize)
	if err != nil {
		return nil, "", err
	}
	if err := reply.Err(scripts.WalletScan); err != nil {
		return nil, "", err
	}
	v := redisdb.NewValues("a page of wallets", reply.Values)
	next = v.NextText()
	for v.Remaining() > 0 {
		userIDs = append(userIDs, strings.TrimPrefix(v.NextText(), keys.WalletPrefix()))
	}
	return userIDs, next, v.Err()
}

// walletsRead is some wallets and the number of the last ledger entry, at one instant.
type walletsRead struct {
	sequence int64
	wallets  map[string]map[string]tokenBalance // user id → code → balance
}

func (s store) readSnapshot(ctx context.Context, userIDs []string) (walletsRead, error) {
	replies := make([]*redis.MapStringStringCmd, len(userIDs))
	var sequence *redis.StringCmd
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		sequence = p.HGet(ctx, keys.Totals(), keys.TotalsSequenceField)
		for i, userID := range userIDs {
			id, err := strconv.ParseInt(userID, 10, 64)
			if err != nil {
				return fmt.Errorf("read the wallet of %q: %w", userID, err)
			}
			replies[i] = p.HGetAll(ctx, keys.Wallet(id))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: no money has moved yet
		return walletsRead{}, redisdb.WrapError("read wallets", err)
	}
	at := walletsRead{wallets: make(map[string]map[string]tokenBalance, len(userIDs))}
	at.sequence, _ = sequence.Int64()
	for i, userID := range userIDs {
		if at.wallets[userID], err = decodeWallet(replies[i].Val()); err != nil {
			return walletsRead{}, fmt.Errorf("wallet of %s: %w", userID, err)
		}
	}
	return at, nil
}

// ledgerEntry is one entry of the ledger; its postings should sum to zero.
type ledgerEntry struct {
	number   int64
	code     string // of the token
	postings []posting
}

// posting moves units into an account, or out of it when they are negative.
type posting struct {
	account string // "w:7"
	kind    string // "w"
	owner   string // "7"; "" for accounts without an owner
	units   Units
	invalid string // the text of a posting that cannot be decoded, else ""
}

// The kinds of accounts.
const (
	accountMint   = keys.AccountMint
	accountHouse  = keys.AccountHouse
	accountWallet = keys.AccountWallet
	accountEscrow = keys.AccountEscrow
)

func walletAccount(userID string) string { return keys.WalletAccount(userID) }

const ledgerPageSize = 1000

// readEntries returns entries after one number and up to another, a page of them at most.
func (s store) readEntries(ctx context.Context, after, upTo int64) ([]ledgerEntry, error) {
	page, err := s.db.Client.XRangeN(ctx, keys.Ledger(),
		strconv.FormatInt(after+1, 10), strconv.FormatInt(upTo, 10), ledgerPageSize).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the ledger", err)
	}
	entries := make([]ledgerEntry, len(page))
	for i, e := range page {
		number, err := entryNumber(e.ID)
		if err != nil {
			return nil, err
		}
		code, _ := e.Values[keys.LedgerTokenField].(string)
		text, _ := e.Values[keys.LedgerPostingsField].(string)
		entries[i] = ledgerEntry{number: number, code: code, postings: decodePostings(text)}
	}
	return entries, nil
}

// decodePostings splits "<account>:<±units>" joined by ";". What is free of charge has no postings.
func decodePostings(text string) []posting {
	if text == "" {
		return nil
	}
	var postings []posting
	for one := range strings.SplitSeq(text, ";") {
		if one == "" {
			continue
		}
		colon := strings.LastIndexByte(one, ':')
		units, err := strconv.ParseInt(one[colon+1:], 10, 64)
		if err != nil || colon < 1 {
			postings = append(postings, posting{invalid: one})
			continue
		}
		p := posting{account: one[:colon], units: Units(units)}
		p.kind, p.owner = keys.ParseAccount(p.account)
		postings = append(postings, p)
	}
	return postings
}
