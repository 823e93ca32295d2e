package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

func parseUnits(text string) (int64, error) {
	units, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no amount", text)
	}
	return units, nil
}

// convertWallet moves a wallet and its lines to the economy of the player's game.
func (p *passState) convertWallet(ctx context.Context, k oldKey, hash map[string]string) ([]record, error) {
	game, err := p.gameOf(k.ID)
	if err != nil {
		return nil, err
	}
	isFirst := p.isFirst(k, countWallets)
	wallet := walletOf{userID: k.ID, gameID: game, free: map[string]string{}, held: map[string]string{}}
	fields := map[string]string{}
	for field, value := range hash {
		name, of, _ := strings.Cut(field, ":")
		switch name {
		case "free":
			wallet.free[of] = value
		case "held":
			wallet.held[of] = value
		case "grant":
			if of != strconv.FormatInt(game, 10) {
				return nil, fmt.Errorf("the grant is of game %s, the player of game %d", of, game)
			}
			fields[keys.WalletGrantField] = "1"
		case "line", "seq":
		default:
			return nil, fmt.Errorf("the field %s is not known", field)
		}
	}
	lineCount, lineErr := parseUnits(hash["line"])
	seq, seqErr := parseUnits(hash["seq"])
	if err := errors.Join(lineErr, seqErr); err != nil {
		return nil, err
	}
	records, lastLines, err := p.convertLines(ctx, wallet, lineCount, seq)
	if err != nil {
		return nil, err
	}
	if lineCount > 0 {
		fields[keys.WalletSeqField] = strconv.FormatInt(seq, 10)
	}
	for code := range maps.Keys(wallet.free) {
		if _, ok := wallet.held[code]; !ok {
			wallet.held[code] = "0"
		}
	}
	for code := range wallet.held {
		free, freeErr := parseUnits(wallet.free[code])
		held, heldErr := parseUnits(wallet.held[code])
		if err := errors.Join(freeErr, heldErr); err != nil {
			return nil, err
		}
		if free < 0 || held < 0 {
			return nil, fmt.Errorf("it has %d and %d held of %s", free, held, code)
		}
		if last := lastLines[code]; last != wallet.free[code] && (last != "" || free != 0 || held != 0) {
			return nil, fmt.Errorf("it has %d of %s, and after its last line %s", free, code, cmp.Or(last, "nothing"))
		}
		if isFirst {
			p.walletsOf(game).add(code, free, held)
		}
		if lastLines[code] != "" { // else it never had any: something was bought for nothing
			fields[code] = strconv.FormatInt(free, 10) + "|" + strconv.FormatInt(held, 10)
		}
	}
	if len(fields) == 0 {
		return records, nil
	}
	return append(records, hashRecord(keys.Wallet(game, k.ID), fields)), nil
}

func (p *passState) walletsOf(game int64) balances {
	if p.wallets[game] == nil {
		p.wallets[game] = balances{}
	}
	return p.wallets[game]
}

// walletOf is a wallet that is being converted.
type walletOf struct {
	userID, gameID int64
	free, held     map[string]string // units by code
}

// convertLines returns the lines of a wallet, and the player's balance of each token after its last
// line. The last line has the number of the player's last event, and the lines before it count back
// from there: so the numbers of events continue. The last line of each token gets the held balance,
// because today's nodes read it there; layout 1 did not store it in lines.
func (p *passState) convertLines(
	ctx context.Context, w walletOf, lineCount, seq int64,
) ([]record, map[string]string, error) {
	if seq < lineCount {
		return nil, nil, fmt.Errorf("it has %d lines and %d events", lineCount, seq)
	}
	last, places, err := p.lastLines(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	name := keys.WalletLines(w.gameID, w.userID)
	var records []record
	from, count := "-", int64(0)
	for {
		if err := p.store.renew(ctx); err != nil {
			return nil, nil, err
		}
		page, err := p.store.db.Client.XRangeN(ctx, keys.OldWalletLinesKey(w.userID), from, "+", maxListValues).Result()
		if err != nil {
			return nil, nil, redisdb.WrapError("read lines", err)
		}
		if len(page) == 0 {
			break
		}
		r := record{key: name, kind: kindList, before: int(count)}
		for _, line := range page {
			count++
			if line.ID != strconv.FormatInt(count, 10)+"-0" {
				return nil, nil, fmt.Errorf("line %s is where line %d should be", line.ID, count)
			}
			entry, err := p.convertLine(w, line, seq-lineCount+count, places[count])
			if err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", count, err)
			}
			r.values = append(r.values, entry)
		}
		records = append(records, r)
		from = "(" + page[len(page)-1].ID
		if len(records) == 20 { // a long list does not wait in memory
			if err := p.sink.put(ctx, records); err != nil {
				return nil, nil, err
			}
			records = nil
		}
	}
	if count != lineCount {
		return nil, nil, fmt.Errorf("it has %d lines, and counts %d", count, lineCount)
	}
	if count > 0 {
		records = append(records, record{key: name, kind: kindList, before: int(count), isWhole: true})
	}
	return records, last, nil
}

// lastLines returns the balance of each token after its last line in a wallet, and the number of
// that line with the held balance.
func (p *passState) lastLines(ctx context.Context, w walletOf) (map[string]string, map[int64]string, error) {
	last, places := map[string]string{}, map[int64]string{}
	to := "+"
	for len(last) < len(w.free) {
		if err := p.store.renew(ctx); err != nil {
			return nil, nil, err
		}
		page, err := p.store.db.Client.XRevRangeN(ctx, keys.OldWalletLinesKey(w.userID), to, "-", maxListValues).Result()
		if err != nil {
			return nil, nil, redisdb.WrapError("read lines", err)
		}
		if len(page) == 0 {
			break
		}
		for _, line := range page {
			code, _ := line.Values["tok"].(string)
			if _, later := last[code]; later {
				continue
			}
			last[code], _ = line.Values["after"].(string)
			number, _, _ := strings.Cut(line.ID, "-")
			place, _ := strconv.ParseInt(number, 10, 64)
			places[place] = cmp.Or(w.held[code], "0")
		}
		to = "(" + page[len(page)-1].ID
	}
	return last, places, nil
}

func (p *passState) convertLine(w walletOf, line redis.XMessage, seq int64, held string) (string, error) {
	f := textsOf(line)
	token, ok := p.tokens[f["tok"]]
	if !ok {
		return "", fmt.Errorf("the token %q is not known", f["tok"])
	}
	ref := f["ref"]
	if to, ok := keys.MigrateRoomID(ref, keys.EconomyShard(w.gameID)); ok && isRoomReason(f["why"]) {
		ref = to
	}
	return strings.Join([]string{
		strconv.FormatInt(seq, 10) + "-" + nonceOf(seq), events.UserBalance.Name, f["at"], f["tok"], token.decimals,
		f["delta"], f["after"], cmp.Or(held, "0"), events.Escape(f["why"]), events.Escape(ref),
	}, "|"), nil
}

// isRoomReason reports whether a line with this reason is about a room.
func isRoomReason(reason string) bool {
	return reason == "entry" || reason == "payout" || reason == "refund"
}

func textsOf(m redis.XMessage) map[string]string {
	texts := make(map[string]string, len(m.Values))
	for name, value := range m.Values {
		texts[name], _ = value.(string)
	}
	return texts
}

// convertLedger splits the ledger by game. The entries of each game keep their order.
func (p *passState) convertLedger(ctx context.Context) error {
	from := "-"
	for {
		if err := p.store.renew(ctx); err != nil {
			return err
		}
		page, err := p.store.db.Client.XRangeN(ctx, keys.OldLedgerKey(), from, "+", maxListValues).Result()
		if err != nil {
			return redisdb.WrapError("read the ledger", err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := p.loadEntryUsers(ctx, page); err != nil {
			return err
		}
		records := map[int64]*record{}
		for _, entry := range page {
			if entry.Values["closed"] != nil {
				continue
			}
			p.entries++
			p.counts[countEntries]++
			if entry.ID != strconv.FormatInt(p.entries, 10)+"-0" {
				p.problem("ledger: entry %s is where entry %d should be", entry.ID, p.entries)
			}
			game, text, err := p.convertEntry(entry)
			if err != nil {
				p.problem("ledger: entry %d: %v", p.entries, err)
				continue
			}
			of := p.ledgerOf(game)
			if records[game] == nil {
				records[game] = &record{key: keys.Ledger(game), kind: kindList, before: of.count}
			}
			records[game].values = append(records[game].values, text)
			of.count++
			of.totals.Add(ledger.Decode(int64(of.count), text))
		}
		var list []record
		for _, game := range slices.Sorted(maps.Keys(records)) {
			list = append(list, *records[game])
		}
		if err := p.sink.put(ctx, list); err != nil {
			return err
		}
		p.report(p.counts)
		from = "(" + page[len(page)-1].ID
	}
}

func (p *passState) ledgerOf(game int64) *gameLedger {
	if p.ledgers[game] == nil {
		p.ledgers[game] = &gameLedger{totals: ledger.Totals{}}
	}
	return p.ledgers[game]
}

// loadEntryUsers reads the games of the players in the postings of entries.
func (p *passState) loadEntryUsers(ctx context.Context, page []redis.XMessage) error {
	var ids []int64
	for _, entry := range page {
		text, _ := entry.Values["post"].(string)
		for one := range strings.SplitSeq(text, ";") {
			if rest, ok := strings.CutPrefix(one, "w:"); ok {
				user, _, _ := strings.Cut(rest, ":")
				if id, err := strconv.ParseInt(user, 10, 64); err == nil {
					ids = append(ids, id)
				}
			}
		}
	}
	return p.loadUserIDs(ctx, ids)
}

// convertEntry returns an entry in today's form, and the game to which it belongs.
func (p *passState) convertEntry(entry redis.XMessage) (game int64, text string, err error) {
	f := textsOf(entry)
	if _, known := p.tokens[f["tok"]]; !known {
		return 0, "", fmt.Errorf("the token %q is not known", f["tok"])
	}
	var postings []string
	room, sum := "", int64(0)
	if f["post"] != "" {
		for one := range strings.SplitSeq(f["post"], ";") {
			posting, units, err := p.convertPosting(one, &game, &room)
			if err != nil {
				return 0, "", err
			}
			sum += units
			postings = append(postings, posting)
		}
	}
	if sum != 0 {
		return 0, "", fmt.Errorf("its postings sum to %d", sum)
	}
	if asset, ok := strings.CutPrefix(f["ref"], "asset:"); ok && game == 0 { // bought for nothing
		id, _ := strconv.ParseInt(asset, 10, 64)
		game = p.assetsOf[id]
	}
	if game == 0 {
		return 0, "", errors.New("it belongs to no game")
	}
	ref := f["ref"]
	if room != "" {
		if room != ref {
			return 0, "", errors.New("its stake is of another room")
		}
		var ok bool
		if ref, ok = keys.MigrateRoomID(room, keys.EconomyShard(game)); !ok {
			return 0, "", fmt.Errorf("%q is no room", room)
		}
	}
	if _, err := strconv.ParseInt(f["at"], 10, 64); err != nil {
		return 0, "", errors.New("it has no time")
	}
	return game, strings.Join([]string{
		f["at"], nonceOf(p.entries), f["tok"], events.Escape(f["why"]), events.Escape(ref), strings.Join(postings, ";"),
	}, "|"), nil
}

// convertPosting returns a posting in today's form. It sets the game of a player and the room of a
// stake, and returns an error for a player of another game.
func (p *passState) convertPosting(one string, game *int64, room *string) (string, int64, error) {
	cut := strings.LastIndexByte(one, ':')
	if cut < 0 {
		return "", 0, fmt.Errorf("the posting %q has no amount", one)
	}
	units, err := strconv.ParseInt(one[cut+1:], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("the posting %q has no amount", one)
	}
	kind, owner, _ := strings.Cut(one[:cut], ":")
	switch kind {
	case keys.AccountMint, keys.AccountHouse:
	case keys.AccountEscrow:
		*room, owner = owner, ""
	case keys.AccountWallet:
		userID, err := strconv.ParseInt(owner, 10, 64)
		if err != nil {
			return "", 0, fmt.Errorf("the posting %q has no player", one)
		}
		of, err := p.gameOf(userID)
		if err != nil {
			return "", 0, err
		}
		if *game != 0 && *game != of {
			return "", 0, errors.New("its players are of two games")
		}
		*game = of
	default:
		return "", 0, fmt.Errorf("the posting %q has an unknown account", one)
	}
	return kind + owner + ":" + strconv.FormatInt(units, 10), units, nil
}

func (p *passState) convertToken(k oldKey, hash map[string]string) []record {
	p.isFirst(k, countTokens)
	fields := maps.Clone(hash)
	fields[keys.TokenGamesField] = ""
	return []record{hashRecord(keys.Token(k.Text), fields)}
}

func (p *passState) convertAsset(k oldKey, hash map[string]string) ([]record, error) {
	p.isFirst(k, countAssets)
	game, err := strconv.ParseInt(hash["game"], 10, 64)
	if err != nil || game < 1 || game > keys.MaxGameID {
		return nil, errors.New("the asset belongs to no game")
	}
	fields := map[string]string{
		keys.AssetLiveField:  pack(hash, "|", []string{"ver", "on", "price", "stock", "limit", "sold"}),
		keys.AssetTokenField: hash["token"], keys.AssetDecimalsField: hash["decimals"], keys.AssetNameField: hash["name"],
		keys.AssetMetadataField: hash["meta"], keys.AssetCreatedField: hash["created"],
	}
	id := strconv.FormatInt(k.ID, 10)
	return []record{hashRecord(keys.Asset(game, k.ID), fields), memberRecord(keys.Assets(game), id, id)}, nil
}

func (p *passState) convertInventory(k oldKey, hash map[string]string) ([]record, error) {
	p.isFirst(k, countOwners)
	game, err := p.gameOf(k.ID)
	if err != nil {
		return nil, err
	}
	return []record{hashRecord(keys.Inventory(game, k.ID), hash)}, nil
}

// migratedReceipt is the receipt of a request that was made before the migration: its fingerprint
// is that of no request, so that a late duplicate is rejected and changes nothing.
const migratedReceipt = "migrated\x1f"

// receiptDigits is the length of the digest in the name of a receipt today. In layout 1 it has more
// digits of the same sum.
const receiptDigits = 16

// convertReceipt returns a receipt in every place in which today's nodes look for it. A player and
// a game's server have one such place. A receipt of the operator may belong to any game.
func (p *passState) convertReceipt(k oldKey, raw rawKey) []record {
	caller, digest, _ := strings.Cut(k.Text, ":")
	if raw.expiresAtMS <= 0 || strings.HasPrefix(digest, "call:") { // of a resend within a minute
		return nil
	}
	p.isFirst(k, countReceipts)
	digest = digest[:receiptDigits]
	r := record{kind: kindString, values: []string{migratedReceipt}, expiresAtMS: raw.expiresAtMS}
	if !k.IsPaid {
		r.key = keys.RoomReceipt(k.Shard, caller, digest)
		return []record{r}
	}
	games := p.gameIDs
	if user := receiptUser(k); user > 0 {
		games = []int64{p.games[user]}
	} else if number, ok := strings.CutPrefix(caller, "g"); ok {
		game, _ := strconv.ParseInt(number, 10, 64)
		games = []int64{game}
	}
	var records []record
	for _, game := range games {
		if game > 0 {
			r.key = keys.MoneyReceipt(game, caller, digest)
			records = append(records, r)
		}
	}
	return records
}

// receiptUser returns the player who has a receipt, 0 for other callers.
func receiptUser(k oldKey) int64 {
	caller, _, _ := strings.Cut(k.Text, ":")
	number, ok := strings.CutPrefix(caller, "u")
	user, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return user
}

// result returns what was counted.
func (p *passState) result() Result {
	r := Result{Counts: p.counts}
	for _, game := range slices.Sorted(maps.Keys(p.ledgers)) {
		totals := p.ledgers[game].totals
		for _, code := range slices.Sorted(maps.Keys(totals)) {
			of := totals[code]
			r.Tokens = append(r.Tokens, TokenTotal{
				GameID: game, Code: code, Minted: of[keys.TotalMinted], Wallets: of[keys.TotalWallets],
				Escrow: of[keys.TotalEscrow], House: of[keys.TotalHouse],
			})
		}
	}
	return r
}

// defects returns why the store cannot be migrated: what could not be read, and every account that
// differs from the ledger.
func (p *passState) defects() []string {
	list := slices.Clone(p.problems)
	differ := func(what string, have, want int64) {
		if have != want {
			list = append(list, fmt.Sprintf("%s: %d, by the ledger %d", what, have, want))
		}
	}
	if last := cmp.Or(p.old[keys.OldTotalsSeqField], "0"); last != strconv.FormatInt(p.entries, 10) {
		list = append(list, fmt.Sprintf("the ledger has %d entries, and counts %s", p.entries, last))
	}
	sums := map[string]int64{} // by TotalField
	games := map[int64]struct{}{}
	for game := range p.ledgers {
		games[game] = struct{}{}
	}
	for game := range p.wallets {
		games[game] = struct{}{}
	}
	for game := range p.pots {
		games[game] = struct{}{}
	}
	for _, game := range slices.Sorted(maps.Keys(games)) {
		for _, code := range slices.Sorted(maps.Keys(p.tokens)) {
			of := p.ledgerOf(game).totals[code]
			name := fmt.Sprintf("game %d, %s", game, code)
			differ(name+", wallets", p.wallets[game][code].free, of[keys.TotalWallets])
			differ(name+", held stakes", p.wallets[game][code].held, of[keys.TotalEscrow])
			differ(name+", pots of rooms", p.pots[game][code].free, of[keys.TotalEscrow])
			differ(name+", minted", of[keys.TotalWallets]+of[keys.TotalEscrow]+of[keys.TotalHouse], of[keys.TotalMinted])
			for total, units := range of {
				sums[keys.TotalField(total, code)] += units
			}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(p.tokens)) {
		for _, total := range []string{keys.TotalMinted, keys.TotalWallets, keys.TotalEscrow, keys.TotalHouse} {
			field := keys.TotalField(total, code)
			old, err := parseUnits(p.old[field])
			if err != nil {
				list = append(list, field+": "+err.Error())
			}
			differ("all games, "+code+", "+total, old, sums[field])
		}
	}
	return list
}

// sameAs returns an error when two passes have counted differently.
func (p *passState) sameAs(other *passState) error {
	if p.entries != other.entries || !maps.EqualFunc(p.wallets, other.wallets, maps.Equal) {
		return errors.New("money moved while the store was migrated: a node of the older release is running; " +
			"stop all nodes and run the migration again")
	}
	return nil
}
