package trail

// KeepAtMost sets how many records of each list are kept.
func (s *Service) KeepAtMost(most int) { s.store.most = records{most, most, most} }
