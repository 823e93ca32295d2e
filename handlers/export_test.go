package handlers

// Operations lists what is served, "GET /api/v1/me".
func (e *Server) Operations() []string {
	var list []string
	for _, r := range e.routes() {
		list = append(list, r.method+" "+r.path)
	}
	return list
}
