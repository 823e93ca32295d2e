package handlers

import (
	"github.com/parlor-games/parlor/internal/money/wallet"
)

func (s *Server) listBalances(r *request) (response, error) {
	balances, err := s.Wallet.ReadBalances(r.ctx(), r.caller.GameID, r.caller.UserID)
	return okResponse(balances), err
}

func (s *Server) listLedger(r *request) (response, error) {
	q := r.query()
	query := wallet.LedgerQuery{TokenCode: q.text("tokenId"), BeforeLine: q.afterID(), Limit: q.limit()}
	if err := q.err(); err != nil {
		return response{}, err
	}
	page, err := s.Wallet.Ledger(r.ctx(), r.caller.GameID, r.caller.UserID, query)
	return okResponse(newPage(page.Lines, page.NextBefore)), err
}
