package handlers

import (
	"github.com/parlor-games/parlor/internal/wallet"
)

func (e *Server) tokenBalances(c *call) (reply, error) {
	all, err := e.Wallet.Balances(c.ctx(), c.caller.User)
	return ok(all), err
}

func (e *Server) ledger(c *call) (reply, error) {
	q := c.query()
	ask := wallet.LedgerQuery{TokenID: q.text("tokenId"), Before: q.after(), Limit: q.limit()}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	lines, err := e.Wallet.Ledger(c.ctx(), c.caller.User, ask)
	return ok(pageOf(lines.Lines, lines.Next)), err
}
