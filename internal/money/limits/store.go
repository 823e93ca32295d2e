package limits

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

var limitsLayout = redisdb.PackedLayout{
	Name: "the limits of a player", Separator: '|', Layout: scripts.WalletLimits,
}

// storedLimits are a player's limits as the wallet has them, and the store's time at which they are
// looked at.
type storedLimits struct {
	now      time.Time
	excluded int64             // ms, 0 for never
	codes    []string          // tokens that the player has or has limits for
	records  map[string]string // by code, packed as limitsLayout
}

func (s *Service) readLimits(ctx context.Context, gameID, userID int64) (storedLimits, error) {
	hash, err := s.db.AutoPipelined.HGetAll(ctx, keys.Wallet(gameID, userID)).Result()
	if err != nil {
		return storedLimits{}, redisdb.WrapError("read the limits of a player", err)
	}
	l := storedLimits{records: map[string]string{}}
	if l.now, err = s.db.ReadClock(ctx); err != nil {
		return storedLimits{}, err
	}
	fields := redisdb.NewFieldsOfHash("the limits of a player", hash)
	l.excluded = fields.Int(keys.WalletExcludedField)
	for field, text := range redisdb.Hash(hash).All {
		if code, ok := keys.ParseWalletLimitsField(field); ok {
			l.records[code], l.codes = text, append(l.codes, code)
		} else if keys.IsTokenField(field) {
			l.codes = append(l.codes, field)
		}
	}
	slices.Sort(l.codes)
	l.codes = slices.Compact(l.codes)
	return l, fields.Err()
}

// excludedUntil returns the end of an exclusion that lasts, else nil.
func (l storedLimits) excludedUntil() *time.Time {
	until := time.UnixMilli(l.excluded).UTC()
	if !until.After(l.now) {
		return nil
	}
	return &until
}

// view returns the limits of a token as they count now.
func (l storedLimits) view(t wallet.Token) (Limits, error) {
	v := Limits{TokenCode: t.Code, ExcludedUntil: l.excludedUntil(), Pending: []Pending{}}
	text, ok := l.records[t.Code]
	if !ok {
		return v, nil
	}
	r := limitsLayout.Split(text)
	limit := func(name, wireName string, decimals int) *wallet.Amount {
		now, next, from := r.Text(name), r.Text(name+"_next"), r.Text(name+"_from")
		if from != "" {
			at := r.Time(name + "_from")
			if at.After(l.now) {
				pending := Pending{Limit: wireName, Value: l.amount(&r, name+"_next", next, decimals), From: at}
				if pending.Value != nil {
					pending.Units = new(pending.Value.Units.String())
				}
				v.Pending = append(v.Pending, pending)
			} else {
				name, now = name+"_next", next
			}
		}
		return l.amount(&r, name, now, decimals)
	}
	v.MaxStake = limit("stake", limitMaxStake, t.Decimals)
	v.MaxLoss = limit("loss", limitMaxLoss, t.Decimals)
	if rooms := limit("rooms", limitMaxOpenRooms, 0); rooms != nil {
		v.MaxOpenRooms = new(int64(rooms.Units))
	}
	v.OpenRooms = new(r.Int("open"))
	lost := t.AmountOf(sumLosses(r.Text("hours"), l.now))
	v.Lost, v.LostUnits = &lost, new(lost.Units.String())
	for amount, units := range map[*wallet.Amount]**string{v.MaxStake: &v.MaxStakeUnits, v.MaxLoss: &v.MaxLossUnits} {
		if amount != nil {
			*units = new(amount.Units.String())
		}
	}
	return v, r.Err()
}

// amount returns a limit of a record, nil for none.
func (l storedLimits) amount(r *redisdb.PackedRecord, name, text string, decimals int) *wallet.Amount {
	if text == noLimit {
		return nil
	}
	return &wallet.Amount{Units: wallet.Units(r.Int(name)), Decimals: decimals}
}

// sumLosses sums as lib_check_limits.lua does: this hour and the 24 before it.
func sumLosses(hours string, now time.Time) (sum wallet.Units) {
	oldest := hourOf(now.UnixMilli()) - lossHours
	for entry := range strings.SplitSeq(hours, ",") {
		hourText, unitsText, _ := strings.Cut(entry, ":")
		hour, hourErr := strconv.ParseInt(hourText, 10, 64)
		units, unitsErr := strconv.ParseInt(unitsText, 10, 64)
		if hourErr == nil && unitsErr == nil && hour >= oldest {
			sum = boundLoss(sum + wallet.Units(units))
		}
	}
	return sum
}

// lossHours is how many hours before this one a loss counts.
const lossHours = 24

func hourOf(ms int64) int64 { return ms / time.Hour.Milliseconds() }

// boundLoss keeps a sum of losses where Lua's numbers are exact.
func boundLoss(sum wallet.Units) wallet.Units {
	return max(-wallet.MaxUnits, min(wallet.MaxUnits, sum))
}

// limitChange is one run of wallet_limit. Limits are texts of minor units, noLimit or keepLimit.
type limitChange struct {
	gameID, userID     int64
	token              wallet.Token
	byStaff            bool
	stake, rooms, loss string
	excluded           string // ms, notExcluded or keepLimit
}

// maxLimitAttempts bounds how often a player's stakes are counted again because money moved.
const maxLimitAttempts = 16

func (s *Service) setLimits(ctx context.Context, c limitChange) error {
	staff := 0
	if c.byStaff {
		staff = 1
	}
	counted := stakeCount{}
	for range maxLimitAttempts {
		reply, err := s.db.RunScript(ctx, scripts.WalletLimit, []string{keys.Wallet(c.gameID, c.userID)},
			scripts.WalletLimitArgs{
				Token: c.token.Code, ByStaff: staff, NewStake: c.stake, NewRooms: c.rooms, NewLoss: c.loss,
				NewExcluded: c.excluded, CountedAt: counted.seq, Open: counted.open, Hours: counted.hours,
			}.List()...)
		if err != nil {
			return err
		}
		values := redisdb.NewValues("the reply of wallet_limit", reply.Values)
		switch reply.Status {
		case scripts.Stale:
			if counted, err = s.countStakes(ctx, c.gameID, c.userID, c.token.Code); err != nil {
				return err
			}
			continue
		case apierror.SelfExcluded.Code:
			until := values.NextTime()
			if values.Err() != nil {
				return values.Err()
			}
			return selfExcluded(until)
		case apierror.Forbidden.Code:
			return apierror.Forbidden.WithReason("an operator can only tighten the limits of a player").
				WithMember("limit", values.NextText())
		}
		return reply.Err(scripts.WalletLimit)
	}
	return apierror.VersionConflict
}

// stakeCount is the stakes of a token that a player made before setting a limit for it, counted
// when the player's last event had the number seq.
type stakeCount struct {
	seq   string
	open  int    // rooms and tournaments with a stake
	hours string // as scripts.WalletLimits has them
}

// countedPages bounds the pages of lines that are read to count stakes. Older stakes are not
// counted.
const (
	countedPages    = 20
	countedPageSize = 1000
)

// countStakes counts a player's rooms and tournaments with a stake, and the losses of the last
// hours. It reads the player's lines, newest first, until they are older than that and it has
// found every stake that is held.
func (s *Service) countStakes(ctx context.Context, gameID, userID int64, code string) (stakeCount, error) {
	now, err := s.db.ReadClock(ctx)
	if err != nil {
		return stakeCount{}, err
	}
	oldest := hourOf(now.UnixMilli()) - lossHours
	counted, held := stakeCount{}, wallet.Units(0)
	closed, lost := map[string]bool{}, map[int64]wallet.Units{}
	for page := range int64(countedPages) {
		entries, at, err := s.readLinesPage(ctx, gameID, userID, code, page)
		if err != nil {
			return stakeCount{}, err
		}
		if counted.seq == "" {
			counted.seq = at.seq
		}
		if counted.seq != at.seq {
			break // the script returns stale
		}
		recent := true
		for _, entry := range slices.Backward(entries) {
			line, err := wallet.DecodeLine(0, entry)
			if err != nil {
				return stakeCount{}, err
			}
			hour := hourOf(line.At.UnixMilli())
			recent = hour >= oldest
			if !keys.CountsInLimits(line.Ref) || line.TokenCode != code {
				continue
			}
			if recent && line.DeltaUnits != 0 {
				lost[hour] = boundLoss(lost[hour] - line.DeltaUnits)
			}
			if line.Reason == entryReason && !closed[line.Ref] {
				counted.open++
				held -= line.DeltaUnits
			}
			closed[line.Ref] = true
		}
		if len(entries) < countedPageSize || !recent && held >= at.held {
			break
		}
	}
	for hour := oldest; hour <= hourOf(now.UnixMilli())+1; hour++ { // a line may be newer than now
		if units, ok := lost[hour]; ok {
			counted.hours += fmt.Sprintf("%d:%s,", hour, units)
		}
	}
	return counted, nil
}

// entryReason is the reason of a line that takes a stake.
const entryReason = "entry"

// walletAt is where a wallet was when a page of its lines was read.
type walletAt struct {
	seq  string
	held wallet.Units // of one token
}

// readLinesPage returns a page of a player's lines, 0 the newest, oldest first, and the wallet at
// the same instant.
func (s *Service) readLinesPage(
	ctx context.Context, gameID, userID int64, code string, page int64,
) (entries []string, at walletAt, err error) {
	var lines *redis.StringSliceCmd
	var fields *redis.SliceCmd
	_, err = s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		lines = p.LRange(ctx, keys.WalletLines(gameID, userID), -(page+1)*countedPageSize, -page*countedPageSize-1)
		fields = p.HMGet(ctx, keys.Wallet(gameID, userID), keys.WalletSeqField, code)
		return nil
	})
	if err != nil {
		return nil, walletAt{}, redisdb.WrapError("count the stakes of a player", err)
	}
	v := redisdb.NewValuesFromHMGet("a wallet", fields.Val())
	at.seq = v.NextText()
	if at.seq == "" {
		at.seq = "0"
	}
	balances, err := wallet.DecodeBalances(redisdb.HashOf(map[string]string{code: orZero(v.NextText())}))
	at.held = balances[code].Held
	return lines.Val(), at, err
}

// orZero returns the balance of a token that the player never had for "".
func orZero(balance string) string {
	if balance == "" {
		return "0|0"
	}
	return balance
}

// Error returns the error of a player's own limit, with its members. status is that of a
// script that takes a stake, values follow it.
func Error(status scripts.Status, values *redisdb.Values) error {
	if status == apierror.SelfExcluded.Code {
		return selfExcluded(values.NextTime())
	}
	limit := values.NextInt()
	if status == apierror.OpenRoomsLimit.Code {
		open, tokenID := values.NextInt(), values.NextText()
		return apierror.OpenRoomsLimit.WithReason("the player has a stake in %d rooms and wants to have at most %d",
			open, limit).WithMember("limit", limitMaxOpenRooms).WithMember("max", limit).
			WithMember("openRooms", open).WithMember("tokenId", tokenID)
	}
	name, limited, lost := limitMaxStake, apierror.StakeLimit, wallet.Units(0)
	if status == apierror.LossLimit.Code {
		name, limited, lost = limitMaxLoss, apierror.LossLimit, wallet.Units(values.NextInt())
	}
	entry, tokenID, decimals := wallet.Units(values.NextInt()), values.NextText(), int(values.NextInt())
	amount := func(units wallet.Units) wallet.Amount { return wallet.Amount{Units: units, Decimals: decimals} }
	err := limited.WithReason("the entry is %s %s and the player's limit %s",
		entry.Decimal(decimals), tokenID, wallet.Units(limit).Decimal(decimals)).
		WithMember("limit", name).WithMember("max", amount(wallet.Units(limit))).
		WithMember("maxAmount", wallet.Units(limit).String()).WithMember("required", amount(entry)).
		WithMember("requiredAmount", entry.String()).WithMember("tokenId", tokenID)
	if name == limitMaxLoss {
		err = err.WithMember("lost", amount(lost)).WithMember("lostAmount", lost.String())
	}
	return err
}

// selfExcluded returns the error of a player who pays no entry and no fee until a time.
func selfExcluded(until time.Time) error {
	return apierror.SelfExcluded.WithReason("the exclusion lasts until %s and cannot be shortened",
		until.Format(time.RFC3339)).WithMember("excludedUntil", until)
}
