package ledger

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
)

// Entry is one entry of a game's ledger; its postings should sum to zero.
type Entry struct {
	Number   int64     // from 1
	Nonce    string    // of the call that made it
	At       time.Time // UTC
	Code     string    // of the token
	Reason   string    // "entry", "payout", "purchase", …, or the reason of a credit or debit
	Ref      string    // "asset:7", a room id, or the caller of a credit or debit
	Postings []Posting
}

// roomReasons are those of the entries that follow from what happens in rooms and tournaments.
var roomReasons = []string{"entry", "refund", "payout"}

// IsOfARoom reports whether an entry is a stake, its refund or a payout. Rooms and tournaments have
// events for these. Staff may give a credit the same reason, but it has no escrow.
func (e *Entry) IsOfARoom() bool {
	hasEscrow := func(p Posting) bool { return p.Kind == keys.AccountEscrow }
	return slices.Contains(roomReasons, e.Reason) && slices.ContainsFunc(e.Postings, hasEscrow)
}

// Posting moves units into an account, or out of it when they are negative.
type Posting struct {
	Account string // "w7"
	Kind    string // "w"
	Owner   string // "7"; "" for accounts without an owner
	Units   int64  // minor units
	Invalid string // the text of a posting that cannot be decoded, else ""
}

// UserID returns the player of a wallet. It returns false for other accounts.
func (p Posting) UserID() (int64, bool) {
	if p.Kind != keys.AccountWallet {
		return 0, false
	}
	id, err := strconv.ParseInt(p.Owner, 10, 64)
	return id, err == nil
}

const entryParts = 6

// unknownNonce is the nonce of an entry that has none.
const unknownNonce = "zzzzzzzz"

// NonceOf returns the nonce of the call that wrote an entry, by its text: 8 digits of base 36.
func NonceOf(text string) string {
	_, rest, _ := strings.Cut(text, "|")
	nonce, _, _ := strings.Cut(rest, "|")
	if len(nonce) != len(unknownNonce) {
		return unknownNonce
	}
	return nonce
}

// Decode decodes the text of an entry. A text that is no entry becomes one with an invalid posting.
func Decode(number int64, text string) Entry {
	parts := strings.SplitN(text, "|", entryParts+1)
	if len(parts) != entryParts {
		return Entry{Number: number, Postings: []Posting{{Invalid: text}}}
	}
	e := Entry{Number: number, Nonce: parts[1], Code: parts[2], Postings: decodePostings(parts[5])}
	if ms, err := strconv.ParseInt(parts[0], 10, 64); err == nil {
		e.At = time.UnixMilli(ms).UTC()
	}
	e.Reason, e.Ref = events.Unescape(parts[3]), events.Unescape(parts[4])
	return e
}

// decodePostings splits "<account>:<±units>" joined by ";". What is free of charge has no postings.
func decodePostings(text string) []Posting {
	if text == "" {
		return nil
	}
	postings := make([]Posting, 0, strings.Count(text, ";")+1)
	for one := range strings.SplitSeq(text, ";") {
		account, amount, _ := strings.Cut(one, ":")
		units, err := strconv.ParseInt(amount, 10, 64)
		if err != nil || account == "" {
			postings = append(postings, Posting{Invalid: one})
			continue
		}
		p := Posting{Account: account, Units: units}
		p.Kind, p.Owner = keys.ParseAccount(account)
		postings = append(postings, p)
	}
	return postings
}
