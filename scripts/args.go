// Code generated from the headers of the scripts; DO NOT EDIT.

package scripts

// AssetCreateArgs are the arguments of AssetCreate.
type AssetCreateArgs struct {
	AssetID any
	// Price: of one in units.
	Price any
	// Stock: "" for no limit.
	Stock any
	// Limit: limit per user ("" for none).
	Limit    any
	Token    any
	Decimals any
	Name     any
	Metadata any
	// Most: most assets of the game.
	Most any
}

// List returns the arguments in their order.
func (a AssetCreateArgs) List() []any {
	return []any{
		a.AssetID, a.Price, a.Stock, a.Limit, a.Token, a.Decimals, a.Name, a.Metadata, a.Most,
	}
}

// AssetPatchArgs are the arguments of AssetPatch.
type AssetPatchArgs struct {
	Nonce any
	// NewOnSale: on sale, 1 or 0.
	NewOnSale any
	// NewPrice: price of one in units.
	NewPrice any
	// NewStock: stock ("" for no limit).
	NewStock any
	// NewLimit: limit per user ("" for none); each of them '=' for no change.
	NewLimit any
}

// List returns the arguments in their order, and behind them more: pairs of a field (name
// meta) and its text.
func (a AssetPatchArgs) List(more ...any) []any {
	return append([]any{
		a.Nonce, a.NewOnSale, a.NewPrice, a.NewStock, a.NewLimit,
	}, more...)
}

// CallWithReceiptArgs are the arguments of lib_call_with_receipt.lua, which begin those of
// the scripts that include it.
type CallWithReceiptArgs struct {
	Publish     any
	Nonce       any
	Fingerprint any
	// TTLMS: of the receipt.
	TTLMS any
}

// AssetPurchaseArgs are the arguments of AssetPurchase.
type AssetPurchaseArgs struct {
	CallWithReceiptArgs
	User     any
	AssetID  any
	Quantity any
	// ExpectedPrice: expected price of one in units ("" for any).
	ExpectedPrice any
	// Token: that the asset costs ("" when the caller found no asset).
	Token    any
	Decimals any
}

// List returns the arguments in their order.
func (a AssetPurchaseArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fingerprint, a.TTLMS, a.User, a.AssetID, a.Quantity,
		a.ExpectedPrice, a.Token, a.Decimals,
	}
}

// AssetRemoveArgs are the arguments of AssetRemove.
type AssetRemoveArgs struct {
	AssetID any
}

// List returns the arguments in their order.
func (a AssetRemoveArgs) List() []any {
	return []any{
		a.AssetID,
	}
}

// BoardDefineArgs are the arguments of BoardDefine.
type BoardDefineArgs struct {
	Nonce any
	// VersionRead: "" for a new one.
	VersionRead any
}

// List returns the arguments in their order, and behind them more: pairs of a field and its
// value.
func (a BoardDefineArgs) List(more ...any) []any {
	return append([]any{
		a.Nonce, a.VersionRead,
	}, more...)
}

// BoardEnterArgs are the arguments of BoardEnter.
type BoardEnterArgs struct {
	User any
	Tier any
	// Size: of a cohort.
	Size any
	// Shards: shards of the leaderboard.
	Shards any
	// Shard: number of the shard.
	Shard any
	// Draw: a random whole number below 2^32.
	Draw any
}

// List returns the arguments in their order.
func (a BoardEnterArgs) List() []any {
	return []any{
		a.User, a.Tier, a.Size, a.Shards, a.Shard, a.Draw,
	}
}

// BoardHideArgs are the arguments of BoardHide.
type BoardHideArgs struct {
	User any
	// Hide: 1 or 0.
	Hide     any
	Segments any
}

// List returns the arguments in their order.
func (a BoardHideArgs) List() []any {
	return []any{
		a.User, a.Hide, a.Segments,
	}
}

// BoardListArgs are the arguments of BoardList.
type BoardListArgs struct {
	Board any
	// Most: most boards of the game ("" for that of a tournament).
	Most any
	// Due: time at which the leader looks at it, in ms.
	Due any
}

// List returns the arguments in their order.
func (a BoardListArgs) List() []any {
	return []any{
		a.Board, a.Most, a.Due,
	}
}

// BoardPlayStartArgs are the arguments of BoardPlayStart.
type BoardPlayStartArgs struct {
	PlayID any
	User   any
	// KeepMS: how long a play is remembered.
	KeepMS    any
	MostPlays any
}

// List returns the arguments in their order, and behind them more: the ids of the listed
// plays, in the order of the list.
func (a BoardPlayStartArgs) List(more ...any) []any {
	return append([]any{
		a.PlayID, a.User, a.KeepMS, a.MostPlays,
	}, more...)
}

// BoardRemoveArgs are the arguments of BoardRemove.
type BoardRemoveArgs struct {
	User     any
	Segments any
}

// List returns the arguments in their order.
func (a BoardRemoveArgs) List() []any {
	return []any{
		a.User, a.Segments,
	}
}

// BoardScheduleArgs are the arguments of BoardSchedule.
type BoardScheduleArgs struct {
	// Taken: time that the leader gave them when it took them, in ms.
	Taken any
}

// List returns the arguments in their order, and behind them more: pairs of a board and the
// next time in ms.
func (a BoardScheduleArgs) List(more ...any) []any {
	return append([]any{
		a.Taken,
	}, more...)
}

// BoardSealArgs are the arguments of BoardSeal.
type BoardSealArgs struct {
	// To: ms from which the season takes no scores.
	To any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a BoardSealArgs) List() []any {
	return []any{
		a.To, a.NodeMS,
	}
}

// CallArgs are the arguments of lib_call.lua, which begin those of the scripts that include
// it.
type CallArgs struct {
	Nonce any
	// Fingerprint: "" for a call without a key.
	Fingerprint any
	// TTLMS: of the receipt.
	TTLMS any
}

// BoardSubmitArgs are the arguments of BoardSubmit.
type BoardSubmitArgs struct {
	CallArgs
	User any
	// From: ms at which the season takes scores.
	From any
	// To: ms from which it takes none, "" for no end.
	To any
	// Order: asc or desc.
	Order    any
	Operator any
	// Units: score in units.
	Units any
	// SubOrder: order of the subscore, "" without one.
	SubOrder any
	// SubOperator: its operator.
	SubOperator any
	// SubUnits: subscore in units.
	SubUnits any
	// Segments: "" when none are given.
	Segments any
	// Details: as JSON, "" for none.
	Details any
	// MostEntries: "" for any number.
	MostEntries any
	// LongestStep: longest step in units, "" for any.
	LongestStep any
	// IntervalMS: shortest interval in ms, "" for any.
	IntervalMS any
	// MostSubmissions: "" for any number.
	MostSubmissions any
	// Play: 1 when one is named.
	Play any
	// ShortestMS: shortest play in ms.
	ShortestMS any
	// LongestMS: longest play in ms.
	LongestMS any
	// Number: of the season.
	Number any
}

// List returns the arguments in their order.
func (a BoardSubmitArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.User, a.From, a.To, a.Order, a.Operator, a.Units,
		a.SubOrder, a.SubOperator, a.SubUnits, a.Segments, a.Details, a.MostEntries,
		a.LongestStep, a.IntervalMS, a.MostSubmissions, a.Play, a.ShortestMS, a.LongestMS,
		a.Number,
	}
}

// ExternalTokenUseArgs are the arguments of ExternalTokenUse.
type ExternalTokenUseArgs struct {
	// TTLMS: for how long it is remembered, in ms.
	TTLMS any
}

// List returns the arguments in their order.
func (a ExternalTokenUseArgs) List() []any {
	return []any{
		a.TTLMS,
	}
}

// FencingTokenIssueArgs are the arguments of FencingTokenIssue.
type FencingTokenIssueArgs struct {
	// Value: of the lock.
	Value any
}

// List returns the arguments in their order.
func (a FencingTokenIssueArgs) List() []any {
	return []any{
		a.Value,
	}
}

// FriendBlockArgs are the arguments of FriendBlock.
type FriendBlockArgs struct {
	// User: who blocks.
	User any
}

// List returns the arguments in their order.
func (a FriendBlockArgs) List() []any {
	return []any{
		a.User,
	}
}

// FriendIndexArgs are the arguments of FriendIndex.
type FriendIndexArgs struct {
	// Other: other user.
	Other any
	// State: friend, outgoing, incoming, blocked or "".
	State any
	// Since: since in ms.
	Since any
	// MaxFriends: most friends, "" for any number.
	MaxFriends any
	// MaxIncoming: most incoming requests.
	MaxIncoming any
	// MaxBlocked: most blocked, "" for any.
	MaxBlocked any
}

// List returns the arguments in their order.
func (a FriendIndexArgs) List() []any {
	return []any{
		a.Other, a.State, a.Since, a.MaxFriends, a.MaxIncoming, a.MaxBlocked,
	}
}

// FriendRemoveArgs are the arguments of FriendRemove.
type FriendRemoveArgs struct {
	User any
}

// List returns the arguments in their order.
func (a FriendRemoveArgs) List() []any {
	return []any{
		a.User,
	}
}

// FriendRequestArgs are the arguments of FriendRequest.
type FriendRequestArgs struct {
	User any
	// Other: other user.
	Other any
}

// List returns the arguments in their order.
func (a FriendRequestArgs) List() []any {
	return []any{
		a.User, a.Other,
	}
}

// GameClaimAudienceArgs are the arguments of GameClaimAudience.
type GameClaimAudienceArgs struct {
	Field any
	Game  any
	// Former: former holder that may be replaced, or 0.
	Former any
}

// List returns the arguments in their order.
func (a GameClaimAudienceArgs) List() []any {
	return []any{
		a.Field, a.Game, a.Former,
	}
}

// GameCountPlayerArgs are the arguments of GameCountPlayer.
type GameCountPlayerArgs struct {
	// Most: most players of a day.
	Most any
}

// List returns the arguments in their order.
func (a GameCountPlayerArgs) List() []any {
	return []any{
		a.Most,
	}
}

// GameCreateArgs are the arguments of GameCreate.
type GameCreateArgs struct {
	Doc any
	// Digest: key digest.
	Digest any
}

// List returns the arguments in their order.
func (a GameCreateArgs) List() []any {
	return []any{
		a.Doc, a.Digest,
	}
}

// GamePatchArgs are the arguments of GamePatch.
type GamePatchArgs struct {
	Doc         any
	VersionRead any
	Nonce       any
}

// List returns the arguments in their order.
func (a GamePatchArgs) List() []any {
	return []any{
		a.Doc, a.VersionRead, a.Nonce,
	}
}

// GameUpdateKeysArgs are the arguments of GameUpdateKeys.
type GameUpdateKeysArgs struct {
	// Added: digest to add or "".
	Added any
	// Removed: digest to remove or "".
	Removed any
}

// List returns the arguments in their order.
func (a GameUpdateKeysArgs) List() []any {
	return []any{
		a.Added, a.Removed,
	}
}

// HistoryAcceptArgs are the arguments of HistoryAccept.
type HistoryAcceptArgs struct {
	// NewName: for an installation without one.
	NewName any
	// LeastEpoch: that the store must exceed.
	LeastEpoch any
	// FormerName: of the installation that it follows, "" for none.
	FormerName any
	// SeenEpoch: that the caller read in the store, 0 for none.
	SeenEpoch any
}

// List returns the arguments in their order.
func (a HistoryAcceptArgs) List() []any {
	return []any{
		a.NewName, a.LeastEpoch, a.FormerName, a.SeenEpoch,
	}
}

// HistoryAdvanceArgs are the arguments of HistoryAdvance.
type HistoryAdvanceArgs struct {
	KnownEpoch any
	AtMS       any
	// Node: a name of letters and digits.
	Node any
}

// List returns the arguments in their order, and behind them more: for each game its id,
// the number of the last entry that was there, the number of the last that is, and how many
// of the lost ones the node had acknowledged ("" when it does not know).
func (a HistoryAdvanceArgs) List(more ...any) []any {
	return append([]any{
		a.KnownEpoch, a.AtMS, a.Node,
	}, more...)
}

// HistoryReadArgs are the arguments of HistoryRead.
type HistoryReadArgs struct {
	Number any
}

// List returns the arguments in their order.
func (a HistoryReadArgs) List() []any {
	return []any{
		a.Number,
	}
}

// HistoryStopArgs are the arguments of HistoryStop.
type HistoryStopArgs struct {
	// SeenEpoch: that the caller read in the store, 0 for none.
	SeenEpoch any
	// Stop: as JSON.
	Stop any
	// MissingEpoch: under which losses are written.
	MissingEpoch any
	AtMS         any
	// Node: a name of letters and digits.
	Node any
}

// List returns the arguments in their order, and behind them more: for each game its id,
// the number of the last entry that was there, the number of the last that is, and how many
// of the lost ones the node had acknowledged ("" when it does not know).
func (a HistoryStopArgs) List(more ...any) []any {
	return append([]any{
		a.SeenEpoch, a.Stop, a.MissingEpoch, a.AtMS, a.Node,
	}, more...)
}

// IdempotencyBeginArgs are the arguments of IdempotencyBegin.
type IdempotencyBeginArgs struct {
	Fingerprint any
	Owner       any
	LeaseMS     any
}

// List returns the arguments in their order.
func (a IdempotencyBeginArgs) List() []any {
	return []any{
		a.Fingerprint, a.Owner, a.LeaseMS,
	}
}

// IdempotencyFinishArgs are the arguments of IdempotencyFinish.
type IdempotencyFinishArgs struct {
	Fingerprint any
	Owner       any
	// Sealed: sealed response.
	Sealed any
	// KeepMS: how long it is kept.
	KeepMS any
}

// List returns the arguments in their order.
func (a IdempotencyFinishArgs) List() []any {
	return []any{
		a.Fingerprint, a.Owner, a.Sealed, a.KeepMS,
	}
}

// IdempotencyReleaseArgs are the arguments of IdempotencyRelease.
type IdempotencyReleaseArgs struct {
	Owner any
}

// List returns the arguments in their order.
func (a IdempotencyReleaseArgs) List() []any {
	return []any{
		a.Owner,
	}
}

// LayoutRaiseArgs are the arguments of LayoutRaise.
type LayoutRaiseArgs struct {
	FromLayout any
	ToLayout   any
}

// List returns the arguments in their order, and behind them more: the ids of all nodes
// that have reported.
func (a LayoutRaiseArgs) List(more ...any) []any {
	return append([]any{
		a.FromLayout, a.ToLayout,
	}, more...)
}

// LedgerFoldArgs are the arguments of LedgerFold.
type LedgerFoldArgs struct {
	// Fence: "" outside of the leader's work.
	Fence any
	// Before: number of the last entry that was folded before.
	Before any
	// Base: the ledger's base, with which the entries were read.
	Base any
	// After: number of the last entry that is in the sums.
	After any
	// LastText: that entry.
	LastText any
}

// List returns the arguments in their order, and behind them more: pairs of a total and by
// how much it changes.
func (a LedgerFoldArgs) List(more ...any) []any {
	return append([]any{
		a.Fence, a.Before, a.Base, a.After, a.LastText,
	}, more...)
}

// LedgerTrimArgs are the arguments of LedgerTrim.
type LedgerTrimArgs struct {
	// Fence: "" outside of the leader's work.
	Fence any
	// Before: the ledger's base before.
	Before any
	// Count: how many entries.
	Count any
	// LastText: the last one.
	LastText any
	// PreviousSum: sum of the segment before ("" for the first).
	PreviousSum any
	// Sum: of the segment.
	Sum any
}

// List returns the arguments in their order.
func (a LedgerTrimArgs) List() []any {
	return []any{
		a.Fence, a.Before, a.Count, a.LastText, a.PreviousSum, a.Sum,
	}
}

// LinesTrimArgs are the arguments of LinesTrim.
type LinesTrimArgs struct {
	// Before: how many lines were removed before.
	Before any
	// Count: how many lines.
	Count any
	// LastText: the last one.
	LastText any
	// Least: how many lines must be left.
	Least any
}

// List returns the arguments in their order.
func (a LinesTrimArgs) List() []any {
	return []any{
		a.Before, a.Count, a.LastText, a.Least,
	}
}

// LockAcquireArgs are the arguments of LockAcquire.
type LockAcquireArgs struct {
	// Value: of the lock.
	Value   any
	LeaseMS any
}

// List returns the arguments in their order.
func (a LockAcquireArgs) List() []any {
	return []any{
		a.Value, a.LeaseMS,
	}
}

// MigrationCloseArgs are the arguments of MigrationClose.
type MigrationCloseArgs struct {
	DeadlineMS any
	// Number: of the last entry that was migrated.
	Number any
}

// List returns the arguments in their order.
func (a MigrationCloseArgs) List() []any {
	return []any{
		a.DeadlineMS, a.Number,
	}
}

// MigrationLeaseArgs are the arguments of MigrationLease.
type MigrationLeaseArgs struct {
	// Value: of the lock.
	Value any
	// LeaseMS: 0 to give it up.
	LeaseMS any
	// IsHeld: is it held, '1' to renew it.
	IsHeld any
}

// List returns the arguments in their order.
func (a MigrationLeaseArgs) List() []any {
	return []any{
		a.Value, a.LeaseMS, a.IsHeld,
	}
}

// MigrationRemoveArgs are the arguments of MigrationRemove.
type MigrationRemoveArgs struct {
	DeadlineMS any
	// Kind: type that the key must have.
	Kind any
}

// List returns the arguments in their order, and behind them more: members of a zset;
// without them the whole key is removed.
func (a MigrationRemoveArgs) List(more ...any) []any {
	return append([]any{
		a.DeadlineMS, a.Kind,
	}, more...)
}

// MigrationWriteArgs are the arguments of MigrationWrite.
type MigrationWriteArgs struct {
	DeadlineMS any
	// Kind: string, hash, zset or list.
	Kind any
	// ExpiresMS: time in ms at which the key expires, "" for no expiry.
	ExpiresMS any
	// Before: number of items before these.
	Before any
}

// List returns the arguments in their order, and behind them more: the values: one text,
// fields and values, scores and members, or items.
func (a MigrationWriteArgs) List(more ...any) []any {
	return append([]any{
		a.DeadlineMS, a.Kind, a.ExpiresMS, a.Before,
	}, more...)
}

// OutboxCloseArgs are the arguments of OutboxClose.
type OutboxCloseArgs struct {
	RoomID any
	Entry  any
	// ParkedEntry: "" for one that was applied.
	ParkedEntry any
	// MostParked: how many entries are kept.
	MostParked any
}

// List returns the arguments in their order.
func (a OutboxCloseArgs) List() []any {
	return []any{
		a.RoomID, a.Entry, a.ParkedEntry, a.MostParked,
	}
}

// PresenceClaimArgs are the arguments of PresenceClaim.
type PresenceClaimArgs struct {
	// Lease: id of the lease.
	Lease any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a PresenceClaimArgs) List() []any {
	return []any{
		a.Lease, a.NodeMS,
	}
}

// PresenceEndArgs are the arguments of PresenceEnd.
type PresenceEndArgs struct {
	// EndedMS: for how long that is remembered.
	EndedMS any
}

// List returns the arguments in their order.
func (a PresenceEndArgs) List() []any {
	return []any{
		a.EndedMS,
	}
}

// PresenceRenewArgs are the arguments of PresenceRenew.
type PresenceRenewArgs struct {
	// Lease: id of the lease.
	Lease any
	// LeaseMS: how long it lasts.
	LeaseMS any
	// Shards: how many shards the node uses.
	Shards any
}

// List returns the arguments in their order.
func (a PresenceRenewArgs) List() []any {
	return []any{
		a.Lease, a.LeaseMS, a.Shards,
	}
}

// PresenceSetArgs are the arguments of PresenceSet.
type PresenceSetArgs struct {
	Publish any
	Nonce   any
	// Lease: id of the lease.
	Lease any
	// Number: of the call.
	Number  any
	RoomID  any
	GraceMS any
	// OfEnded: 1 for a lease that has ended.
	OfEnded any
	// Here: ids of users with a socket.
	Here any
	// Gone: ids of users without one any more, or * for all others.
	Gone any
}

// List returns the arguments in their order.
func (a PresenceSetArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Lease, a.Number, a.RoomID, a.GraceMS, a.OfEnded, a.Here, a.Gone,
	}
}

// PrizeFundArgs are the arguments of PrizeFund.
type PrizeFundArgs struct {
	Nonce    any
	Source   any
	Token    any
	Decimals any
	Units    any
	// From: house or mint.
	From any
	// MostEntries: that are not folded.
	MostEntries any
	// Board: "" for a source without a budget.
	Board any
	// FundedAt: ms at which the season is funded.
	FundedAt any
	// UntilMS: until, ms of its scheduled end, "" for none.
	UntilMS any
}

// List returns the arguments in their order, and behind them more: the units that the
// game's server keys may mint in a day, when one of them funds.
func (a PrizeFundArgs) List(more ...any) []any {
	return append([]any{
		a.Nonce, a.Source, a.Token, a.Decimals, a.Units, a.From, a.MostEntries, a.Board,
		a.FundedAt, a.UntilMS,
	}, more...)
}

// PrizePayArgs are the arguments of PrizePay.
type PrizePayArgs struct {
	Publish any
	Nonce   any
	Source  any
	// NextLine: lines that are paid.
	NextLine any
	// Wanted: how many lines follow.
	Wanted any
	// GivenLines: these, with commas between them.
	GivenLines any
}

// List returns the arguments in their order.
func (a PrizePayArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Source, a.NextLine, a.Wanted, a.GivenLines,
	}
}

// PrizePlanArgs are the arguments of PrizePlan.
type PrizePlanArgs struct {
	// Digest: of the whole plan.
	Digest any
	// Lines: lines of the whole plan.
	Lines any
	// Before: lines before these.
	Before any
}

// List returns the arguments in their order, and behind them more: the lines.
func (a PrizePlanArgs) List(more ...any) []any {
	return append([]any{
		a.Digest, a.Lines, a.Before,
	}, more...)
}

// PrizeVoidArgs are the arguments of PrizeVoid.
type PrizeVoidArgs struct {
	Nonce  any
	Source any
	// Reason: escaped.
	Reason any
}

// List returns the arguments in their order.
func (a PrizeVoidArgs) List() []any {
	return []any{
		a.Nonce, a.Source, a.Reason,
	}
}

// ProbeWriteArgs are the arguments of ProbeWrite.
type ProbeWriteArgs struct {
	TTLMS any
}

// List returns the arguments in their order.
func (a ProbeWriteArgs) List() []any {
	return []any{
		a.TTLMS,
	}
}

// RateLimitTakeArgs are the arguments of RateLimitTake.
type RateLimitTakeArgs struct {
	// Interval: µs for one permit.
	Interval any
	Burst    any
	// Wanted: permits wanted, 0 to take none.
	Wanted any
	// Used: permits used already.
	Used any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a RateLimitTakeArgs) List() []any {
	return []any{
		a.Interval, a.Burst, a.Wanted, a.Used, a.NodeMS,
	}
}

// RefreshRotateArgs are the arguments of RefreshRotate.
type RefreshRotateArgs struct {
	// Digest: of the token.
	Digest any
	// NextDigest: digest of the next token.
	NextDigest any
	// IdleMS: longest idle time in ms.
	IdleMS any
	// GraceMS: how long the token before the current one may be shown again, in ms.
	GraceMS any
	// Name: of the family.
	Name any
}

// List returns the arguments in their order.
func (a RefreshRotateArgs) List() []any {
	return []any{
		a.Digest, a.NextDigest, a.IdleMS, a.GraceMS, a.Name,
	}
}

// RefreshStartArgs are the arguments of RefreshStart.
type RefreshStartArgs struct {
	// Digest: of the first token.
	Digest any
	Game   any
	// IdleMS: longest idle time in ms.
	IdleMS any
	// LifeMS: longest life in ms.
	LifeMS any
	// Name: of the family.
	Name any
	// ServerKey: id of the server key that made it or "".
	ServerKey any
}

// List returns the arguments in their order.
func (a RefreshStartArgs) List() []any {
	return []any{
		a.Digest, a.Game, a.IdleMS, a.LifeMS, a.Name, a.ServerKey,
	}
}

// RoomCancelArgs are the arguments of RoomCancel.
type RoomCancelArgs struct {
	CallArgs
	Publish any
	// User: "" for server and operator.
	User any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// Users: ids of the users whose keys are given.
	Users any
	// Reason: host server operator tournament no_show.
	Reason any
	// EventsMS: how long the events outlive the room.
	EventsMS any
	// WasDisputed: 1 when the room was read as disputed.
	WasDisputed any
}

// List returns the arguments in their order.
func (a RoomCancelArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.RoomID, a.Users,
		a.Reason, a.EventsMS, a.WasDisputed,
	}
}

// RoomCloseMatchArgs are the arguments of RoomCloseMatch.
type RoomCloseMatchArgs struct {
	Publish any
	Nonce   any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// Users: ids of the users whose keys are given.
	Users any
	// EventsMS: how long the events outlive the room.
	EventsMS any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a RoomCloseMatchArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.CallerGame, a.RoomID, a.Users, a.EventsMS, a.NodeMS,
	}
}

// RoomCreateArgs are the arguments of RoomCreate.
type RoomCreateArgs struct {
	CallArgs
	Publish any
	User    any
	RoomID  any
	// IDStep: step between ids.
	IDStep any
	// IDOffset: offset of the shard's ids.
	IDOffset any
	Code     any
	// Settings: "" to look up the receipt only.
	Settings any
	Document any
	Profile  any
	// MaxSeats: most seats of a player, 0 for any number.
	MaxSeats any
	// MaxRooms: most rooms made by a player that have not ended, likewise.
	MaxRooms any
	// Ended: ids of the player's rooms that have ended, with "," behind each, and before them
	// when all were looked up.
	Ended any
	// Stakes: 1 when a free room feeds a leaderboard with prizes, else "".
	Stakes any
}

// List returns the arguments in their order.
func (a RoomCreateArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.RoomID, a.IDStep, a.IDOffset,
		a.Code, a.Settings, a.Document, a.Profile, a.MaxSeats, a.MaxRooms, a.Ended, a.Stakes,
	}
}

// RoomFinishArgs are the arguments of RoomFinish.
type RoomFinishArgs struct {
	CallArgs
	Publish any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// Placements: one for each seat of a paid room.
	Placements any
	Rake       any
	// ComputedFor: version for which these were computed.
	ComputedFor any
	// EventsMS: how long the events outlive the room.
	EventsMS any
}

// List returns the arguments in their order.
func (a RoomFinishArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.CallerGame, a.RoomID, a.Placements, a.Rake,
		a.ComputedFor, a.EventsMS,
	}
}

// RoomJoinArgs are the arguments of RoomJoin.
type RoomJoinArgs struct {
	CallArgs
	Publish any
	User    any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// MayStart: may the join start the room, 1 or 0.
	MayStart any
	Profile  any
	// Friend: is the user a friend of the creator, 1, 0, or "" when it was not looked up.
	Friend any
	// MaxSeats: most seats of a player, 0 for any number.
	MaxSeats any
}

// List returns the arguments in their order.
func (a RoomJoinArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.RoomID, a.MayStart,
		a.Profile, a.Friend, a.MaxSeats,
	}
}

// RoomKickArgs are the arguments of RoomKick.
type RoomKickArgs struct {
	CallArgs
	Publish any
	// User: "" for the game's server.
	User any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// Users: ids of the users whose keys are given.
	Users  any
	Target any
	// Ban: 1 or 0.
	Ban any
	// EventsMS: how long the events outlive the room.
	EventsMS any
	// HasOutbox: 1 when its key is given.
	HasOutbox any
}

// List returns the arguments in their order.
func (a RoomKickArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.RoomID, a.Users,
		a.Target, a.Ban, a.EventsMS, a.HasOutbox,
	}
}

// RoomLeaveArgs are the arguments of RoomLeave.
type RoomLeaveArgs struct {
	CallArgs
	Publish any
	User    any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// Users: ids of the users whose keys are given, in the order of the placements.
	Users any
	// Placements: what the players left over get.
	Placements any
	Rake       any
	// ComputedFor: version for which these were computed (0 when not read yet).
	ComputedFor any
	// EventsMS: how long the events outlive the room.
	EventsMS any
	// Over: deadline of the turn that is over ("" for a player who leaves).
	Over any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a RoomLeaveArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.RoomID, a.Users,
		a.Placements, a.Rake, a.ComputedFor, a.EventsMS, a.Over, a.NodeMS,
	}
}

// RoomOpenMatchArgs are the arguments of RoomOpenMatch.
type RoomOpenMatchArgs struct {
	Publish any
	Nonce   any
	RoomID  any
	// Users: ids of the users whose keys are given, the host first.
	Users any
	// IDStep: step between ids.
	IDStep any
	// IDOffset: offset of the shard's ids.
	IDOffset any
	Code     any
	Settings any
	Document any
	// Deadline: ms until which the players may sit down.
	Deadline any
	// Stakes: 1 when its tournament has a fee or a prize, else 0.
	Stakes any
	// DisputeMS: how long a dispute may last.
	DisputeMS any
}

// List returns the arguments in their order, and behind them more: the profile of each of
// them.
func (a RoomOpenMatchArgs) List(more ...any) []any {
	return append([]any{
		a.Publish, a.Nonce, a.RoomID, a.Users, a.IDStep, a.IDOffset, a.Code, a.Settings,
		a.Document, a.Deadline, a.Stakes, a.DisputeMS,
	}, more...)
}

// RoomReadyArgs are the arguments of RoomReady.
type RoomReadyArgs struct {
	CallArgs
	Publish any
	User    any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// IsReady: ready, 1 or 0.
	IsReady any
	// Users: ids of the users with a reserved seat, which a start removes ("" when not known
	// yet).
	Users any
}

// List returns the arguments in their order.
func (a RoomReadyArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.RoomID, a.IsReady,
		a.Users,
	}
}

// RoomRematchArgs are the arguments of RoomRematch.
type RoomRematchArgs struct {
	CallArgs
	Publish any
	User    any
	// CallerGame: game.
	CallerGame any
	// NewRoomID: id of the new room.
	NewRoomID any
	// IDStep: step between ids.
	IDStep any
	// IDOffset: offset of the shard's ids.
	IDOffset any
	Code     any
	// Document: of the new room.
	Document any
	Profile  any
	// Users: ids of the others.
	Users any
	// MaxSeats: most seats of a player, 0 for any number.
	MaxSeats any
	// MaxRooms: most rooms made by a player that have not ended, likewise.
	MaxRooms any
	// Ended: ids of the player's rooms that have ended, with "," behind each, and before them
	// when all were looked up.
	Ended any
	// Stakes: of the new room, 1 when a free one feeds a leaderboard with prizes, else "".
	Stakes any
}

// List returns the arguments in their order.
func (a RoomRematchArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.NewRoomID, a.IDStep,
		a.IDOffset, a.Code, a.Document, a.Profile, a.Users, a.MaxSeats, a.MaxRooms, a.Ended,
		a.Stakes,
	}
}

// RoomReportArgs are the arguments of RoomReport.
type RoomReportArgs struct {
	CallArgs
	Publish any
	User    any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// Effect: what the report must do: add, agree, concede, contradict, repeat or conflict; ""
	// when it names other players than the room has.
	Effect any
	// Seen: "<status>|<active seats>" of the room for which the effect was found.
	Seen any
	// Compared: user with whose report it was compared, "" for none.
	Compared any
	// Report: as it is stored.
	Report any
	// Placements: one for each seat of a paid room.
	Placements any
	Rake       any
	// DisputeMS: how long a dispute may last, unless the room has its own time.
	DisputeMS any
	// EventsMS: how long the events outlive the room.
	EventsMS any
	// WindowMS: how long the others may report after the first report.
	WindowMS any
}

// List returns the arguments in their order.
func (a RoomReportArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.RoomID, a.Effect,
		a.Seen, a.Compared, a.Report, a.Placements, a.Rake, a.DisputeMS, a.EventsMS, a.WindowMS,
	}
}

// RoomResolveArgs are the arguments of RoomResolve.
type RoomResolveArgs struct {
	CallArgs
	Publish any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// Users: ids of the users whose keys are given, in the order of the placements.
	Users any
	// Outcome: finish or cancel; "" when the result names other players than the room has.
	Outcome    any
	Placements any
	Rake       any
	// ComputedFor: version for which these were computed.
	ComputedFor any
	// EventsMS: how long the events outlive the room.
	EventsMS any
	// Losers: ids of the users who reported something else than the result.
	Losers any
}

// List returns the arguments in their order.
func (a RoomResolveArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.CallerGame, a.RoomID, a.Users, a.Outcome,
		a.Placements, a.Rake, a.ComputedFor, a.EventsMS, a.Losers,
	}
}

// RoomStartArgs are the arguments of RoomStart.
type RoomStartArgs struct {
	CallArgs
	Publish any
	// User: "" for the game's server.
	User any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// Users: ids of the users with a reserved seat, which the start removes ("" when not known
	// yet).
	Users any
}

// List returns the arguments in their order.
func (a RoomStartArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.RoomID, a.Users,
	}
}

// RoomStateSetArgs are the arguments of RoomStateSet.
type RoomStateSetArgs struct {
	CallArgs
	Publish any
	// User: "" for the game's server.
	User any
	// CallerGame: game.
	CallerGame any
	// HostOnly: 1 when a name is the host's alone.
	HostOnly any
	// ReadVersion: version that the caller read.
	ReadVersion any
	// Patch: the changed values as a JSON object.
	Patch any
	// Deleted: the deleted names with commas.
	Deleted  any
	MaxBytes any
	MaxNames any
}

// List returns the arguments in their order, and behind them more: pairs of a changed name
// and its value.
func (a RoomStateSetArgs) List(more ...any) []any {
	return append([]any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.HostOnly,
		a.ReadVersion, a.Patch, a.Deleted, a.MaxBytes, a.MaxNames,
	}, more...)
}

// RoomSweepArgs are the arguments of RoomSweep.
type RoomSweepArgs struct {
	Publish any
	Nonce   any
	RoomID  any
	// Users: ids of the users whose keys are given.
	Users any
	// Fence: fencing token of the sweep's leader.
	Fence any
	// EventsMS: how long the events outlive the room.
	EventsMS any
	// DisputeMS: how long a dispute may last, unless the room has its own time.
	DisputeMS any
	// WasDisputed: 1 when the room was read as disputed.
	WasDisputed any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a RoomSweepArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.RoomID, a.Users, a.Fence, a.EventsMS, a.DisputeMS, a.WasDisputed,
		a.NodeMS,
	}
}

// RoomTransferArgs are the arguments of RoomTransfer.
type RoomTransferArgs struct {
	CallArgs
	Publish any
	// User: "" for the game's server.
	User any
	// CallerGame: game.
	CallerGame any
	Target     any
}

// List returns the arguments in their order.
func (a RoomTransferArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.Target,
	}
}

// RoomTurnSetArgs are the arguments of RoomTurnSet.
type RoomTurnSetArgs struct {
	CallArgs
	Publish any
	// User: "" for the game's server.
	User any
	// CallerGame: game.
	CallerGame any
	RoomID     any
	// Player: who gets the turn ("" for nobody).
	Player  any
	Seconds any
	// Timeout: skip or forfeit, what happens at the deadline; a player's turn skips in a room
	// with stakes, and each turn in a match with stakes whose players report the result.
	Timeout any
}

// List returns the arguments in their order.
func (a RoomTurnSetArgs) List() []any {
	return []any{
		a.Nonce, a.Fingerprint, a.TTLMS, a.Publish, a.User, a.CallerGame, a.RoomID, a.Player,
		a.Seconds, a.Timeout,
	}
}

// RoomTurnSkipArgs are the arguments of RoomTurnSkip.
type RoomTurnSkipArgs struct {
	Publish any
	Nonce   any
	RoomID  any
	// NodeMS: the time of the node.
	NodeMS any
	// LeastMS: how long the next turn lasts at least.
	LeastMS any
}

// List returns the arguments in their order.
func (a RoomTurnSkipArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.RoomID, a.NodeMS, a.LeastMS,
	}
}

// RoomWindowCloseArgs are the arguments of RoomWindowClose.
type RoomWindowCloseArgs struct {
	Publish any
	Nonce   any
	RoomID  any
	// Outcome: finish; dispute when silence may not agree; open when nobody who stayed made a
	// report.
	Outcome any
	// Placements: one for each seat of a paid room.
	Placements any
	Rake       any
	// ComputedFor: version for which these were computed.
	ComputedFor any
	// DisputeMS: how long a dispute may last, unless the room has its own time.
	DisputeMS any
	// EventsMS: how long the events outlive the room.
	EventsMS any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a RoomWindowCloseArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.RoomID, a.Outcome, a.Placements, a.Rake, a.ComputedFor, a.DisputeMS,
		a.EventsMS, a.NodeMS,
	}
}

// SaveReadArgs are the arguments of SaveRead.
type SaveReadArgs struct {
	// WithState: with the newest state, 1 or 0.
	WithState any
	// Other: other version, or "".
	Other any
}

// List returns the arguments in their order.
func (a SaveReadArgs) List() []any {
	return []any{
		a.WithState, a.Other,
	}
}

// SaveWriteArgs are the arguments of SaveWrite.
type SaveWriteArgs struct {
	Publish any
	Nonce   any
	// Base: the version that the caller last read.
	Base any
	// Checked: the version that the rules were checked against.
	Checked any
	// Version: base + 1.
	Version any
	Message any
	Mark    any
	State   any
	Slot    any
	// Line: of the slot in the list.
	Line any
	// MaxSlots: most slots.
	MaxSlots any
	// MaxVersions: versions kept.
	MaxVersions any
	// EventValues: its members as JSON.
	EventValues any
	// MaxBytes: most bytes of all versions.
	MaxBytes any
	// WithOthers: with the other slots, 1 or 0.
	WithOthers any
}

// List returns the arguments in their order.
func (a SaveWriteArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Base, a.Checked, a.Version, a.Message, a.Mark, a.State, a.Slot,
		a.Line, a.MaxSlots, a.MaxVersions, a.EventValues, a.MaxBytes, a.WithOthers,
	}
}

// SessionsEndArgs are the arguments of SessionsEnd.
type SessionsEndArgs struct {
	// Subject: which sessions.
	Subject any
	// BeganByMS: time by which they had begun, in ms, "" for all.
	BeganByMS any
	// Code: close code of their sockets.
	Code any
	// OldestMS: time before which ends are dropped, in ms.
	OldestMS any
	// UntilMS: time at which the end itself ends, in ms, "" for never.
	UntilMS any
}

// List returns the arguments in their order.
func (a SessionsEndArgs) List() []any {
	return []any{
		a.Subject, a.BeganByMS, a.Code, a.OldestMS, a.UntilMS,
	}
}

// TokenCreateArgs are the arguments of TokenCreate.
type TokenCreateArgs struct {
	Nonce    any
	Code     any
	Decimals any
	Name     any
	// Logo: "" for none.
	Logo any
	// Asset: asset name.
	Asset any
	// Policy: policy id.
	Policy any
	Games  any
}

// List returns the arguments in their order.
func (a TokenCreateArgs) List() []any {
	return []any{
		a.Nonce, a.Code, a.Decimals, a.Name, a.Logo, a.Asset, a.Policy, a.Games,
	}
}

// TotalsReadArgs are the arguments of TotalsRead.
type TotalsReadArgs struct {
	MostEntries any
}

// List returns the arguments in their order.
func (a TotalsReadArgs) List() []any {
	return []any{
		a.MostEntries,
	}
}

// TourAdvanceArgs are the arguments of TourAdvance.
type TourAdvanceArgs struct {
	Publish any
	Nonce   any
	// Fence: "" outside of the leader's work.
	Fence any
	// TourID: tournament id.
	TourID any
	// NextStatus: next state.
	NextStatus any
	// MadeFor: version for which it was decided.
	MadeFor any
	Rake    any
	// Payouts: "<user>:<place>:<units>:;" for each place that is paid.
	Payouts any
}

// List returns the arguments in their order.
func (a TourAdvanceArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fence, a.TourID, a.NextStatus, a.MadeFor, a.Rake, a.Payouts,
	}
}

// TourAttemptArgs are the arguments of TourAttempt.
type TourAttemptArgs struct {
	Nonce any
	User  any
	// Most: most attempts.
	Most any
}

// List returns the arguments in their order.
func (a TourAttemptArgs) List() []any {
	return []any{
		a.Nonce, a.User, a.Most,
	}
}

// TourCancelArgs are the arguments of TourCancel.
type TourCancelArgs struct {
	Nonce any
	// Fence: "" for staff.
	Fence any
	// TourID: tournament id.
	TourID any
	// Why: operator, server, unplayed, or expired, which waits for its time.
	Why any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a TourCancelArgs) List() []any {
	return []any{
		a.Nonce, a.Fence, a.TourID, a.Why, a.NodeMS,
	}
}

// TourCheckInArgs are the arguments of TourCheckIn.
type TourCheckInArgs struct {
	CallWithReceiptArgs
	User any
}

// List returns the arguments in their order.
func (a TourCheckInArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fingerprint, a.TTLMS, a.User,
	}
}

// TourCreateArgs are the arguments of TourCreate.
type TourCreateArgs struct {
	CallWithReceiptArgs
	// TourID: tournament id.
	TourID any
	// Settings: "" to look up the receipt only.
	Settings any
	// Definition: as JSON.
	Definition any
	// Actor: actor who made it.
	Actor any
	// Most: most tournaments of the game that have not ended.
	Most any
}

// List returns the arguments in their order.
func (a TourCreateArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fingerprint, a.TTLMS, a.TourID, a.Settings, a.Definition, a.Actor,
		a.Most,
	}
}

// TourJoinArgs are the arguments of TourJoin.
type TourJoinArgs struct {
	CallWithReceiptArgs
	User any
	// Ref: of the tournament.
	Ref     any
	Profile any
}

// List returns the arguments in their order.
func (a TourJoinArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fingerprint, a.TTLMS, a.User, a.Ref, a.Profile,
	}
}

// TourLeaveArgs are the arguments of TourLeave.
type TourLeaveArgs struct {
	CallWithReceiptArgs
	User any
	// Ref: of the tournament.
	Ref any
	// TourID: tournament id.
	TourID any
	// NewState: out or disqualified.
	NewState any
}

// List returns the arguments in their order.
func (a TourLeaveArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fingerprint, a.TTLMS, a.User, a.Ref, a.TourID, a.NewState,
	}
}

// TourOpenArgs are the arguments of TourOpen.
type TourOpenArgs struct {
	Publish any
	Nonce   any
	// Fence: "" outside of the leader's work.
	Fence any
	// TourID: tournament id.
	TourID any
	// Prize: 1 when the added prize is there.
	Prize any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a TourOpenArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fence, a.TourID, a.Prize, a.NodeMS,
	}
}

// TourPairArgs are the arguments of TourPair.
type TourPairArgs struct {
	Publish any
	Nonce   any
	Fence   any
	// TourID: tournament id.
	TourID any
	// NewRound: round.
	NewRound any
	// MadeFor: version for which the pairings were made.
	MadeFor any
	// Seeds: the players in the order of their seeds.
	Seeds any
	// Undecided: how many matches are not decided.
	Undecided any
	// WaitMS: until their deadline.
	WaitMS any
	// Count: how many matches.
	Count any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order, and behind them more: pairs of a match id and
// its match, without the deadline.
func (a TourPairArgs) List(more ...any) []any {
	return append([]any{
		a.Publish, a.Nonce, a.Fence, a.TourID, a.NewRound, a.MadeFor, a.Seeds, a.Undecided,
		a.WaitMS, a.Count, a.NodeMS,
	}, more...)
}

// TourRefundArgs are the arguments of TourRefund.
type TourRefundArgs struct {
	Publish any
	Nonce   any
	// Fence: "" outside of the leader's work.
	Fence any
	// TourID: tournament id.
	TourID  any
	MatchID any
	// MadeFor: attempt to which it happened.
	MadeFor any
	// Ref: of the tournament.
	Ref any
	// Users: ids of the users whose keys are given, the players of the match.
	Users any
	// Over: 1 for what may happen after the deadline only.
	Over any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a TourRefundArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fence, a.TourID, a.MatchID, a.MadeFor, a.Ref, a.Users, a.Over,
		a.NodeMS,
	}
}

// TourRemoveArgs are the arguments of TourRemove.
type TourRemoveArgs struct {
	// TourID: tournament id.
	TourID any
}

// List returns the arguments in their order.
func (a TourRemoveArgs) List() []any {
	return []any{
		a.TourID,
	}
}

// TourReportArgs are the arguments of TourReport.
type TourReportArgs struct {
	Publish any
	Nonce   any
	// Fence: "" outside of the leader's work.
	Fence any
	// TourID: tournament id.
	TourID  any
	MatchID any
	// MadeFor: attempt to which it happened.
	MadeFor any
	// Was: status that the match must have ("" for any but DECIDED).
	Was any
	// NewState: new status.
	NewState   any
	NewAttempt any
	// NewRoom: room id.
	NewRoom any
	// NewWinner: winner, "" for none.
	NewWinner any
	// NewReason: why it is decided ("" when it is not).
	NewReason any
	// WaitMS: until the deadline of the new status.
	WaitMS any
	// Over: 1 for what may happen after the deadline only.
	Over any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a TourReportArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fence, a.TourID, a.MatchID, a.MadeFor, a.Was, a.NewState,
		a.NewAttempt, a.NewRoom, a.NewWinner, a.NewReason, a.WaitMS, a.Over, a.NodeMS,
	}
}

// TourSettleArgs are the arguments of TourSettle.
type TourSettleArgs struct {
	Publish any
	Nonce   any
	// Fence: "" outside of the leader's work.
	Fence any
	// Ref: ref of the tournament.
	Ref any
	// Users: ids of the users whose keys are given.
	Users any
}

// List returns the arguments in their order.
func (a TourSettleArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fence, a.Ref, a.Users,
	}
}

// TourStartArgs are the arguments of TourStart.
type TourStartArgs struct {
	Publish any
	Nonce   any
	// Fence: "" for staff.
	Fence any
	// TourID: tournament id.
	TourID any
	// Draw: the random number of the draw.
	Draw any
	// NodeMS: the time of the node.
	NodeMS any
}

// List returns the arguments in their order.
func (a TourStartArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fence, a.TourID, a.Draw, a.NodeMS,
	}
}

// TrailAppendArgs are the arguments of TrailAppend.
type TrailAppendArgs struct {
	Act any
	// Most: most records.
	Most any
	// MarkMS: for how long the mark stays in ms.
	MarkMS any
	// Game: game of the server ("" of an operator).
	Game any
}

// List returns the arguments in their order.
func (a TrailAppendArgs) List() []any {
	return []any{
		a.Act, a.Most, a.MarkMS, a.Game,
	}
}

// UserChangeKindArgs are the arguments of UserChangeKind.
type UserChangeKindArgs struct {
	// From: kind that the account must have.
	From any
	// To: new kind.
	To any
}

// List returns the arguments in their order.
func (a UserChangeKindArgs) List() []any {
	return []any{
		a.From, a.To,
	}
}

// UserCreateArgs are the arguments of UserCreate.
type UserCreateArgs struct {
	Game     any
	Kind     any
	Username any
	// Avatar: avatar or "".
	Avatar any
	// IdentityField: field of the identity or "".
	IdentityField any
}

// List returns the arguments in their order.
func (a UserCreateArgs) List() []any {
	return []any{
		a.Game, a.Kind, a.Username, a.Avatar, a.IdentityField,
	}
}

// UserLinkIdentityArgs are the arguments of UserLinkIdentity.
type UserLinkIdentityArgs struct {
	User any
}

// List returns the arguments in their order.
func (a UserLinkIdentityArgs) List() []any {
	return []any{
		a.User,
	}
}

// UserMatchArgs are the arguments of UserMatch.
type UserMatchArgs struct {
	Publish     any
	Nonce       any
	EventValues any
}

// List returns the arguments in their order.
func (a UserMatchArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.EventValues,
	}
}

// UserUnlinkIdentityArgs are the arguments of UserUnlinkIdentity.
type UserUnlinkIdentityArgs struct {
	User any
	// GrantedMS: for how long it is remembered that the player had the signup grant, 0 when
	// the player had none.
	GrantedMS any
}

// List returns the arguments in their order.
func (a UserUnlinkIdentityArgs) List() []any {
	return []any{
		a.User, a.GrantedMS,
	}
}

// WalletCreditArgs are the arguments of WalletCredit.
type WalletCreditArgs struct {
	CallWithReceiptArgs
	User     any
	Token    any
	Decimals any
	Units    any
	// Reason: escaped.
	Reason any
	// Ref: escaped.
	Ref any
}

// List returns the arguments in their order, and behind them more: the units that the
// game's server keys may mint in a day, when one of them credits.
func (a WalletCreditArgs) List(more ...any) []any {
	return append([]any{
		a.Publish, a.Nonce, a.Fingerprint, a.TTLMS, a.User, a.Token, a.Decimals, a.Units,
		a.Reason, a.Ref,
	}, more...)
}

// WalletDebitArgs are the arguments of WalletDebit.
type WalletDebitArgs struct {
	CallWithReceiptArgs
	User     any
	Token    any
	Decimals any
	Units    any
	// Reason: escaped.
	Reason any
	// Ref: escaped.
	Ref any
}

// List returns the arguments in their order.
func (a WalletDebitArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.Fingerprint, a.TTLMS, a.User, a.Token, a.Decimals, a.Units,
		a.Reason, a.Ref,
	}
}

// WalletGrantArgs are the arguments of WalletGrant.
type WalletGrantArgs struct {
	Publish  any
	Nonce    any
	User     any
	Token    any
	Decimals any
	Units    any
	Ref      any
	// Limit: units that the game's grants may mint in a day.
	Limit any
}

// List returns the arguments in their order.
func (a WalletGrantArgs) List() []any {
	return []any{
		a.Publish, a.Nonce, a.User, a.Token, a.Decimals, a.Units, a.Ref, a.Limit,
	}
}

// WalletLimitArgs are the arguments of WalletLimit.
type WalletLimitArgs struct {
	Token any
	// ByStaff: who only tighten: 1 or 0.
	ByStaff any
	// NewStake: highest stake, "" for no limit, '=' to keep it, as in the next two.
	NewStake any
	// NewRooms: most rooms with a stake.
	NewRooms any
	// NewLoss: highest loss in 24 hours.
	NewLoss any
	// NewExcluded: excluded until, in ms: '0' for not excluded, '=' to keep it.
	NewExcluded any
	// CountedAt: last event of the player, its number when open and hours were counted, ""
	// when they were not.
	CountedAt any
	// Open: as wallet_limits has it.
	Open any
	// Hours: likewise.
	Hours any
}

// List returns the arguments in their order.
func (a WalletLimitArgs) List() []any {
	return []any{
		a.Token, a.ByStaff, a.NewStake, a.NewRooms, a.NewLoss, a.NewExcluded, a.CountedAt, a.Open,
		a.Hours,
	}
}

// WebhookCommitArgs are the arguments of WebhookCommit.
type WebhookCommitArgs struct {
	// Fence: of the leader.
	Fence any
	// Round: of the state that the leader read.
	Round any
	// MostAttempts: that are kept.
	MostAttempts any
	// MostParked: that are kept.
	MostParked    any
	AttemptsCount any
	ParkedCount   any
}

// List returns the arguments in their order, and behind them more: the attempts, the parked
// entries, and pairs of a field of the state and its value, "" for a field that goes.
func (a WebhookCommitArgs) List(more ...any) []any {
	return append([]any{
		a.Fence, a.Round, a.MostAttempts, a.MostParked, a.AttemptsCount, a.ParkedCount,
	}, more...)
}

// WebhookDefineArgs are the arguments of WebhookDefine.
type WebhookDefineArgs struct {
	WebhookID any
	// Was: the definition that was read, "" for a new one.
	Was any
	// Definition: "" removes it.
	Definition any
	// Most: most webhooks of a game.
	Most any
}

// List returns the arguments in their order.
func (a WebhookDefineArgs) List() []any {
	return []any{
		a.WebhookID, a.Was, a.Definition, a.Most,
	}
}

// WebhookRewindArgs are the arguments of WebhookRewind.
type WebhookRewindArgs struct {
	// Round: a new one.
	Round any
}

// List returns the arguments in their order, and behind them more: pairs of a field of the
// state and its value.
func (a WebhookRewindArgs) List(more ...any) []any {
	return append([]any{
		a.Round,
	}, more...)
}

// WebhookUnparkArgs are the arguments of WebhookUnpark.
type WebhookUnparkArgs struct {
	// Round: a new one.
	Round any
}

// List returns the arguments in their order.
func (a WebhookUnparkArgs) List() []any {
	return []any{
		a.Round,
	}
}
