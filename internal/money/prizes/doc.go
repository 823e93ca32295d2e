// Package prizes sets units aside for winners and pays them out, each prize once.
//
// A source is a season of a leaderboard or a tournament that promises prizes. Its units lie in a
// ledger account of their own, apart from the stakes, so that what players hold is what is in
// escrow at every instant.
//
//	house, minted ──Fund──> p:<source> ──Pay──> wallets, house
//	house, minted <──Void── p:<source>          house, minted (what is left)
//
//	NONE ──Fund──> FUNDED ──Plan──> PLANNED ──Pay──> PAID
//	               FUNDED, PLANNED ──Void──> VOID
//
// A plan is a list of lines: who gets what. Pay takes a hundred of them at a time, from a cursor
// that the same script moves on. So the paying node may die at any instant, and another one goes
// on.
//
// After every script:
//
//   - minted == wallets + escrow + prizes + house, and the held stakes are the escrow.
//   - The account of a source has its pool less what was paid; nothing once it is PAID or VOID.
//   - A plan pays at most its pool, and never changes once it is whole: the first whole one counts.
//   - A line is paid once: in the order of the plan, and only with all lines before it.
//
// # What is decided here
//
// A source is funded once. A house that is too poor funds nothing, and the caller may try again.
//
// A source that was voided stays so: a leader that was replaced cannot fund it again. Once a line
// is paid a source cannot be voided.
//
// Prizes may carry a balance past the most that a credit may leave, as payouts of rooms may.
//
// A prize may be pieces of an asset without a stock. It is no purchase: it changes neither what was
// sold nor the bound of a player's pieces.
//
// The callers of this package are other domains, which have checked who may do this.
package prizes
