package trail

// KeepAtMost sets how many records of operators, and of game servers, are kept.
func (s *Service) KeepAtMost(records int) { s.store.maxRecords = records }
