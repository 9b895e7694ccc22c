package composecheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// root is the repository, seen from this package's folder.
const root = "../.."

// load reads docker-compose.yml as `docker compose --profile '*' config` would, in an empty environment.
func load(t *testing.T) *types.Project {
	t.Helper()

	dir, err := filepath.Abs(root)
	require.NoError(t, err)

	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: types.ToConfigFiles([]string{filepath.Join(dir, "docker-compose.yml")}),
		Environment: types.Mapping{},
	}, func(o *loader.Options) {
		o.SetProjectName("billing", true) // in use, the folder's name
		o.Profiles = []string{"*"}
	})
	require.NoError(t, err)

	return project
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)

	return string(content)
}

func TestComposeHasTheFiveParts(t *testing.T) {
	t.Parallel()

	project := load(t)

	require.ElementsMatch(t, []string{"kafka", "postgres", "provider", "billing", "orders"}, project.ServiceNames())
	require.Equal(t, []string{"orders"}, project.Services["orders"].Profiles)

	for name, service := range project.Services {
		if name != "orders" {
			require.Empty(t, service.Profiles, "%s starts without a profile", name)
		}
	}
}

// Compose warns about a version line; docker-compose 1.29, which Debian 12 has, refuses a name.
func TestBothFormsOfComposeReadTheFile(t *testing.T) {
	t.Parallel()

	require.NotRegexp(t, `(?m)^(version|name):`, read(t, "docker-compose.yml"))
}

func TestImagesArePinned(t *testing.T) {
	t.Parallel()

	project := load(t)

	require.Regexp(t, `^apache/kafka:4\.\d+\.\d+$`, project.Services["kafka"].Image)
	require.Regexp(t, `^postgres:17(\.\d+)?$`, project.Services["postgres"].Image)

	for _, name := range []string{"provider", "billing", "orders"} {
		require.NotNil(t, project.Services[name].Build, "%s is built here", name)
	}

	require.Equal(t, "billing", project.Services["billing"].Build.Target)
	require.Equal(t, "sandbox", project.Services["provider"].Build.Target)
	require.Equal(t, "sandbox", project.Services["orders"].Build.Target)
}

func TestComposeRunsTheBrokerOfTheTests(t *testing.T) {
	t.Parallel()

	found := regexp.MustCompile(`<kafka\.version>(.+)</kafka\.version>`).FindStringSubmatch(read(t, "deploy/kafka/pom.xml"))

	require.Len(t, found, 2, "deploy/kafka/pom.xml names its version")
	require.Equal(t, "apache/kafka:"+found[1], load(t).Services["kafka"].Image)
}

func TestPortsAreOpenOnLoopbackOnly(t *testing.T) {
	t.Parallel()

	published := 0

	for name, service := range load(t).Services {
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s publishes %s", name, port.Published)
			published++
		}

		require.Empty(t, service.NetworkMode, "%s stays on the project's own network", name)
	}

	require.NotZero(t, published)
}

func TestStandingPartsTellTheirHealth(t *testing.T) {
	t.Parallel()

	project := load(t)

	for _, name := range []string{"kafka", "postgres", "provider", "billing"} {
		check := project.Services[name].HealthCheck

		require.NotNil(t, check, name)
		require.False(t, check.Disable, name)
		require.NotEmpty(t, check.Test, name)
		require.Equal(t, "CMD", check.Test[0], "%s: distroless images have no shell", name)
		require.NotNil(t, check.Timeout, "%s: every wait has a deadline", name)
	}

	require.Equal(t, types.HealthCheckTest{"CMD", "/billing", "health"}, project.Services["billing"].HealthCheck.Test)
}

func TestServicesStartAfterTheHealthyPartsTheyNeed(t *testing.T) {
	t.Parallel()

	project := load(t)

	for name, needs := range map[string][]string{
		"billing": {"kafka", "postgres", "provider"},
		"orders":  {"billing"},
	} {
		require.Len(t, project.Services[name].DependsOn, len(needs), name)

		for _, need := range needs {
			require.Equal(t, types.ServiceConditionHealthy, project.Services[name].DependsOn[need].Condition, "%s needs %s", name, need)
		}
	}
}

func TestBillingMayFinishItsChargesBeforeItIsKilled(t *testing.T) {
	t.Parallel()

	billing := load(t).Services["billing"]

	require.NotNil(t, billing.Environment["SHUTDOWN_TIMEOUT"])

	shutdown, err := time.ParseDuration(*billing.Environment["SHUTDOWN_TIMEOUT"])
	require.NoError(t, err)
	require.NotNil(t, billing.StopGracePeriod)
	require.Greater(t, time.Duration(*billing.StopGracePeriod), shutdown)
}

func TestDataLivesInNamedVolumes(t *testing.T) {
	t.Parallel()

	project := load(t)

	for _, name := range []string{"kafka", "postgres"} {
		volumes := project.Services[name].Volumes

		require.Len(t, volumes, 1, name)
		require.Equal(t, types.VolumeTypeVolume, volumes[0].Type, name)
		require.Contains(t, project.Volumes, volumes[0].Source, name)
	}

	require.Equal(t, *project.Services["kafka"].Environment["KAFKA_LOG_DIRS"], project.Services["kafka"].Volumes[0].Target,
		"the volume is where the broker writes")
}

func TestImageRunsWithoutRoot(t *testing.T) {
	t.Parallel()

	dockerfile := read(t, "Dockerfile")

	stages := strings.Split(dockerfile, "\nFROM ")
	require.Len(t, stages, 4, "comment, build, sandbox, billing")

	for _, stage := range stages[2:] {
		require.Regexp(t, `(?m)^USER [1-9]\d*(:[1-9]\d*)?$`, stage, "a number can be checked by runAsNonRoot")
	}

	require.Contains(t, stages[3], `CMD ["/billing", "health"]`)
	require.NotContains(t, dockerfile, "# syntax", "such a line needs a registry before the build starts")
}
