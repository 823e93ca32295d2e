package handlers

import (
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/progress"
)

type replaceSaveInput struct {
	StateJSON       wire.RawJSON `json:"state" required:"true"`
	LastReadVersion int64        `json:"version"` // that the caller last read; 0: none
}

func (s *Server) replaceSave(r *request, in *replaceSaveInput) (response, error) {
	saved, err := s.Progress.ReplaceState(r.ctx(), r.caller, progress.ReplaceInput{
		UserID: r.id("userId"), Slot: r.Param("slot"), State: in.StateJSON, BaseVersion: in.LastReadVersion,
	})
	return okResponse(&saved), err
}
