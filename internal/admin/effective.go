package admin

import "net/http"

// ConfigStatus is the configuration in force. It holds no secret.
type ConfigStatus struct {
	Settings     []Setting
	Inequalities []Inequality
}

// Setting is one variable of the environment, or its default.
type Setting struct {
	Name   string
	Value  string // as it is written in the environment; of a secret only that it is given
	Secret bool
}

// Inequality is a relation between settings that a guarantee rests on.
type Inequality struct {
	Left, LeftIs   string // what is smaller, and its figure
	Relation       string // "<" or "<="
	Right, RightIs string
	Holds          bool
	Waived         bool // it need not hold: something else sees to the guarantee
	Guarantee      string
}

type configView struct {
	Settings     []settingView    `json:"settings"`
	Inequalities []inequalityView `json:"inequalities"`
}

type settingView struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Secret bool   `json:"secret"`
}

type inequalityView struct {
	Left      string `json:"left"`
	LeftIs    string `json:"left_is"`
	Relation  string `json:"relation"`
	Right     string `json:"right"`
	RightIs   string `json:"right_is"`
	Holds     bool   `json:"holds"`
	Waived    bool   `json:"waived"`
	Guarantee string `json:"guarantee"`
}

// config shows what this process runs with.
func (s *Server) config(r *http.Request) (any, error) {
	if _, err := parseParams(r); err != nil {
		return nil, err
	}
	now := s.deps.Config()
	view := configView{
		Settings:     make([]settingView, len(now.Settings)),
		Inequalities: make([]inequalityView, len(now.Inequalities)),
	}
	for i, setting := range now.Settings {
		view.Settings[i] = settingView(setting)
	}
	for n := range now.Inequalities {
		i := &now.Inequalities[n]
		view.Inequalities[n] = inequalityView{
			Left: i.Left, LeftIs: i.LeftIs, Relation: i.Relation, Right: i.Right, RightIs: i.RightIs,
			Holds: i.Holds, Waived: i.Waived, Guarantee: i.Guarantee,
		}
	}
	return view, nil
}
