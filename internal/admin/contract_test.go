package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/api"
	"example.com/billing/internal/domain"
)

// contract is api/openapi.yaml.
type contract struct {
	doc    *openapi3.T
	router routers.Router
	bytes  []byte
}

var loadContract = sync.OnceValues(func() (*contract, error) {
	bytes, err := api.FS.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(bytes)
	if err != nil {
		return nil, err
	}
	if err = doc.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		return nil, err
	}
	openapi3filter.RegisterBodyDecoder("application/problem+json", openapi3filter.RegisteredBodyDecoder("application/json"))
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.RegisteredBodyDecoder("text/plain"))
	router, err := legacy.NewRouter(doc)
	return &contract{doc: doc, router: router, bytes: bytes}, err
})

func theContract(t *testing.T) *contract {
	t.Helper()
	c, err := loadContract()
	require.NoError(t, err)
	return c
}

// request says whether the contract allows the request.
func (c *contract) request(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	if strings.HasSuffix(r.URL.Path, "/") || r.URL.RawPath != "" {
		return nil, routers.ErrPathNotFound // this router takes them for other paths
	}
	route, path, err := c.router.FindRoute(r)
	if err != nil {
		return nil, err
	}
	input := &openapi3filter.RequestValidationInput{
		Request: r, Route: route, PathParams: path,
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true,
		},
	}
	return input, openapi3filter.ValidateRequest(r.Context(), input)
}

// check holds an answer against the contract: its status, headers and body, and
// that the body has no member which is not in the contract.
func (c *contract) check(t *testing.T, r *http.Request, got *httptest.ResponseRecorder) {
	t.Helper()
	asked := r.Clone(r.Context())
	if r.Method == http.MethodHead {
		asked.Method = http.MethodGet // the same but for the body
	}
	input, err := c.request(asked)
	if input == nil || got.Code == http.StatusInternalServerError {
		c.checkProblem(t, got)
		return
	}
	if got.Code == http.StatusOK {
		require.NoError(t, err, "the contract does not allow a request that was answered")
	}
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: got.Code, Header: got.Header(), Options: input.Options,
	}
	if r.Method == http.MethodHead {
		options := *input.Options
		options.ExcludeResponseBody = true
		response.Options = &options
	}
	response.SetBodyBytes(got.Body.Bytes())
	require.NoError(t, openapi3filter.ValidateResponse(r.Context(), response))
	media := input.Route.Operation.Responses.Status(got.Code).Value.Content.Get(got.Header().Get("Content-Type"))
	if r.Method != http.MethodHead && media.Schema.Value.Type.Is("string") == false {
		require.NoError(t, declared(decode(t, got), media.Schema.Value, "$"))
	}
}

// checkProblem holds an answer that belongs to no operation against the schema.
func (c *contract) checkProblem(t *testing.T, got *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, "application/problem+json", got.Header().Get("Content-Type"))
	schema := c.doc.Components.Schemas["Problem"].Value
	body := decode(t, got)
	require.NoError(t, schema.VisitJSON(body))
	require.NoError(t, declared(body, schema, "$"))
}

func decode(t *testing.T, got *httptest.ResponseRecorder) any {
	t.Helper()
	var body any
	require.NoError(t, json.Unmarshal(got.Body.Bytes(), &body), got.Body.String())
	return body
}

// declared returns an error that names a member without a schema.
func declared(value any, schema *openapi3.Schema, path string) error {
	switch value := value.(type) {
	case map[string]any:
		properties := openapi3.Schemas{}
		collect(schema, properties)
		for name, member := range value {
			property := properties[name]
			if property == nil {
				return fmt.Errorf("%s.%s is not in the contract", path, name)
			}
			if err := declared(member, property.Value, path+"."+name); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range value {
			if err := declared(item, schema.Items.Value, path+"[]"); err != nil {
				return err
			}
		}
	}
	return nil
}

func collect(schema *openapi3.Schema, into openapi3.Schemas) {
	maps.Copy(into, schema.Properties)
	for _, part := range schema.AllOf {
		collect(part.Value, into)
	}
}

func TestTheContractAndTheRoutesAreTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var routed, specified []string
	routes, ok := b.server.Handler().(chi.Routes)
	require.True(t, ok)
	heads := map[string]bool{}
	require.NoError(t, chi.Walk(routes, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method == http.MethodHead {
			heads[path] = true
			return nil
		}
		routed = append(routed, method+" "+path)
		return nil
	}))
	for path, item := range theContract(t).doc.Paths.Map() {
		require.Equal(t, item.Get != nil, heads[path], "HEAD %s", path)
		for method := range item.Operations() {
			specified = append(specified, method+" "+path)
		}
	}
	slices.Sort(routed)
	slices.Sort(specified)
	require.Equal(t, specified, routed)
}

func TestTheContractNamesWhatTheDomainNames(t *testing.T) {
	t.Parallel()
	schemas := theContract(t).doc.Components.Schemas
	require.Equal(t, names(domain.Reasons()), schemas["Reason"].Value.Enum)
	require.Equal(t, names(domain.LetterStates()), schemas["LetterState"].Value.Enum)
	require.Equal(t, names(domain.Outcomes()), schemas["Outcome"].Value.Enum)
	require.Equal(t, names(domain.Results()), schemas["Result"].Value.Enum)
	require.Equal(t, names(domain.DuplicateKinds()), schemas["DuplicateKind"].Value.Enum)
	require.Equal(t, names([]domain.SeriesStep{domain.StepMinute, domain.StepHour, domain.StepDay}), schemas["SeriesStep"].Value.Enum)
	require.Equal(t, names(domain.MomentKinds()), schemas["MomentKind"].Value.Enum)
	var bounds []any
	for _, bucket := range domain.DelayBuckets() {
		if _, bounded := bucket.Bound(); bounded {
			bounds = append(bounds, bucket.String())
		}
	}
	buckets := schemas["Delays"].Value.Properties["buckets"].Value.Items.Value
	require.Equal(t, bounds, buckets.Properties["up_to"].Value.Enum)
	require.Equal(t, names(domain.ChargeStatuses()), schemas["ChargeStatus"].Value.Enum)
	states := []domain.IntentState{
		domain.Waiting, domain.Calling, domain.UnknownOutcome, domain.Answered, domain.Parked, domain.Held,
	}
	require.Equal(t, names(states), schemas["Intent"].Value.Properties["state"].Value.Enum)
}

func names[T ~string](values []T) []any {
	out := make([]any, len(values))
	for i, value := range values {
		out[i] = string(value)
	}
	return out
}

func TestOpenRoutesAreOpenInTheContract(t *testing.T) {
	t.Parallel()
	for path, item := range theContract(t).doc.Paths.Map() {
		for method, operation := range item.Operations() {
			open := operation.Security != nil && len(*operation.Security) == 0
			require.Equal(t, slices.Contains(openPaths, path), open, path)
			require.Equal(t, !open, operation.Responses.Status(http.StatusUnauthorized) != nil, path)
			require.Equal(t, method != http.MethodGet, operation.Responses.Status(http.StatusForbidden) != nil, path)
		}
	}
}

func TestTheContractIsServedAsItIs(t *testing.T) {
	t.Parallel()
	got := setup(t).get(t, "/openapi.yaml")
	require.Equal(t, http.StatusOK, got.Code)
	require.Equal(t, string(theContract(t).bytes), got.Body.String())
}
