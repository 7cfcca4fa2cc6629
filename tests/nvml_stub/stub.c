/* A driver library for tests: NVML's public entry points over computers that $NVML_STUB names.
 *
 * Structures, versions, units and error numbers are those of NVIDIA's public nvml.h; sizes are
 * exact. What live readings say is a function of the time, in seconds since the library was first
 * used, or $NVML_STUB_TIME where that is set (read at every call: a test's own clock).
 *
 *   plain            one RTX 4090 with a desktop on it
 *   two              RTX 4090 and RTX 3060 12GB
 *   nvlink           two A100-SXM4-80GB, 12 links between them
 *   hopper           H100 80GB HBM3, MIG off, GPM samples
 *   mig              H100 80GB HBM3 with a 3g.40gb and two 1g.10gb; no utilisation on the parent
 *   mig-user         the same for a person who is no administrator: no places are told
 *   mig-pending      MIG asked for, in force after a reset
 *   mig-off          as some drivers do: no profile is told while MIG is off
 *   mig-other        H100 80GB of a driver with other profiles: other names, memory and places
 *   mig-strange      a card that no catalog has, which can be divided
 *   mig-strange-user the same for a person who is no administrator
 *   mig-two          two H100 80GB in MIG mode, one of them without an instance yet
 *   mig-garbage      millions of places
 *   mig-lost         falls off the bus while its profiles are read
 *   mig-hang         the places of its profiles are never told
 *   mig-old          a driver that tells no profile's name (link with -DOLD: the symbol is absent)
 *   mig-container    as a container sees one instance: nothing of the parent may be read
 *   wsl              utilisation and processes' memory not told
 *   laptop           power limit, fan and energy not told
 *   unified          memory shared with the processor: not told
 *   silent           an RTX 4090 that does not tell its memory
 *   narrow           an x16 card in an x4 slot of generation 3
 *   throttled        too hot and at its power limit
 *   low-power        at a power limit that somebody lowered to half of the board's own
 *   foreign-process  another person's training holds 18 GiB
 *   hidden-processes the list of processes needs permission
 *   garbage          names that are no UTF-8
 *   strange          a card that no catalog has
 *   old-driver       before v2 structures (link with -DOLD: the symbols are absent)
 *   lost             of two, the second fell off the bus before
 *   lost-midway      of two, the second answers for $NVML_STUB_AT (2) seconds only
 *   lost-reading     of two, the second answers 6 calls only
 *   reload           the driver is away from 2 to 4 s; old handles are void afterwards
 *   hang             of two, the second's memory reading never returns
 *   hang-midway      every call hangs after $NVML_STUB_AT (2) seconds
 *   hang-init        the library's start never returns
 *   crash            reading the second of two kills the process
 *   crash-init       the library's start kills the process
 *   crash-midway     every call kills the process after $NVML_STUB_AT (2) seconds
 *   chatty           prints on standard output at every call
 *   none             a driver without GPUs
 *   not-loaded, updated, no-permission: the library's start fails
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define MIB (1ULL << 20)

typedef int Status;
typedef unsigned long long u64;
enum {
  OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
  TOO_SMALL = 7, NOT_LOADED = 9, LOST = 15, MISMATCH = 18, NO_DATA = 21, OLD_VERSION = 25
};

typedef struct {
  const char *name;
  unsigned mib, reserved_mib, held_mib; /* what the driver keeps; what idle programs hold */
  int major, minor;
  unsigned generation, lanes;
  unsigned watts, least_watts, most_watts; /* default, and the range that may be set */
  unsigned graphics_mhz, memory_mhz;
  int ecc; /* -1: the card has none */
  int mig; /* whether it can be divided */
  int links; /* NVLink */
  int gpm;
  unsigned cores;
  unsigned pci_device;
} Card;

static const Card RTX_4090 = {"NVIDIA GeForce RTX 4090", 24564, 357, 843, 8, 9, 4, 16, 450, 150,
                              600, 3105, 10501, 0, 0, 0, 0, 16384, 0x268410DE};
static const Card RTX_3060 = {"NVIDIA GeForce RTX 3060", 12288, 264, 4, 8, 6, 4, 16, 170, 100, 212,
                              2115, 7501, -1, 0, 0, 0, 3584, 0x250310DE};
static const Card LAPTOP = {"NVIDIA GeForce RTX 4070 Laptop GPU", 8188, 224, 15, 8, 9, 4, 8, 0, 0,
                            0, 3105, 8001, -1, 0, 0, 0, 4608, 0x282010DE};
static const Card A100 = {"NVIDIA A100-SXM4-80GB", 81920, 569, 4, 8, 0, 4, 16, 400, 100, 400, 1410,
                          1593, 1, 1, 12, 0, 6912, 0x20B210DE};
static const Card H100 = {"NVIDIA H100 80GB HBM3", 81559, 551, 4, 9, 0, 5, 16, 700, 200, 700, 1980,
                          2619, 1, 1, 18, 1, 16896, 0x233010DE};
static const Card GB10 = {"NVIDIA GB10", 0, 0, 0, 12, 1, 5, 1, 0, 0, 0, 3003, 0, -1, 0, 0, 0,
                          6144, 0x2E1210DE};
static const Card DIVISIBLE = {"NVIDIA Prototype 8", 131072, 900, 10, 10, 0, 6, 16, 800, 200, 900,
                               2100, 4501, 1, 1, 0, 0, 18432, 0x2CFF10DE};
static const Card STRANGE = {"NVIDIA Prototype 7", 49152, 600, 10, 12, 0, 5, 16, 300, 100, 300,
                             2600, 14001, 1, 0, 0, 0, 12288, 0x2BFF10DE};

/* One instance of a divided GPU: instance id, SMs, engines, slices and memory as nvidia-smi lists
 * them for an H100 80GB (MIG user guide, "Supported MIG Profiles"). */
typedef struct {
  const char *profile;
  unsigned instance, sm, copy, decoders, jpeg, slices;
  unsigned mib, used_mib;
} Instance;
static const Instance INSTANCES[] = {{"3g.40gb", 2, 60, 3, 3, 3, 3, 40448, 8192},
                                     {"1g.10gb", 9, 16, 1, 1, 1, 1, 9984, 4096},
                                     {"1g.10gb", 10, 16, 1, 1, 1, 1, 9984, 15}};
enum { INSTANCE_COUNT = sizeof INSTANCES / sizeof *INSTANCES };

typedef struct {
  const Card *card;
  unsigned index;
  const Instance *instance; /* of a divided GPU; NULL: the whole one */
  unsigned slot;
} Gpu;
typedef Gpu *Device;

static Gpu gpus[2], instances[INSTANCE_COUNT];
static int started, era, calls_of_second;

/* --- the scenario ------------------------------------------------------------------------- */

static const char *scenario(void) {
  const char *named = getenv("NVML_STUB");
  return named ? named : "plain";
}

static int is(const char *what) { return !strcmp(scenario(), what); }

static double number(const char *name, double otherwise) {
  const char *text = getenv(name);
  return text && *text ? atof(text) : otherwise;
}

static double now(void) {
  static double first = -1;
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  double seconds = at.tv_sec + at.tv_nsec * 1e-9;
  if (first < 0) first = seconds;
  return number("NVML_STUB_TIME", seconds - first);
}

static u64 micros(void) {
  return (u64)(1.7e15 + now() * 1e6);
}

static void hang(void) {
  for (;;) pause();
}

static int away(void) { return is("reload") && now() >= 2 && now() < 4; }

static int age(void) { return is("reload") && now() >= 4; }

/* Whether it is one of the scenarios of "mig" but for what reading profiles does. */
static int divided(void) {
  const char *all[] = {"mig", "mig-user", "mig-container", "mig-two", "mig-garbage", "mig-lost",
                       "mig-hang", "mig-old"};
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
    if (is(all[i])) return 1;
  return 0;
}

static int strange_divisible(void) { return is("mig-strange") || is("mig-strange-user"); }

static unsigned count(void) {
  if (is("none")) return 0;
  const char *pairs[] = {"two", "nvlink", "lost", "lost-midway", "lost-reading", "hang", "crash",
                         "mig-two"};
  for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (is(pairs[i])) return 2;
  return 1;
}

static const Card *card_at(unsigned index) {
  if (is("nvlink")) return &A100;
  if (is("hopper") || divided() || is("mig-pending") || is("mig-off") || is("mig-other"))
    return &H100;
  if (strange_divisible()) return &DIVISIBLE;
  if (is("laptop")) return &LAPTOP;
  if (is("unified")) return &GB10;
  if (is("strange")) return &STRANGE;
  return index ? &RTX_3060 : &RTX_4090;
}

/* Whether the library and this GPU answer at all; every call on a GPU begins with it. */
static Status alive(Device gpu) {
  if (is("hang-midway") && now() >= number("NVML_STUB_AT", 2)) hang();
  if (is("crash-midway") && now() >= number("NVML_STUB_AT", 2)) raise(SIGSEGV);
  if (is("chatty")) printf("{\"gpu\": 0, \"reading\""), fflush(stdout);
  if (!started || away() || era != age()) return UNINITIALIZED;
  if (!gpu) return INVALID;
  if (gpu->index == 1) {
    if (is("lost")) return LOST;
    if (is("lost-midway") && now() >= number("NVML_STUB_AT", 2)) return LOST;
    if (is("lost-reading") && ++calls_of_second > 6) return LOST;
  }
  return OK;
}

#define ALIVE(gpu) do { Status s_ = alive(gpu); if (s_) return s_; } while (0)
#define WHOLE(gpu) do { ALIVE(gpu); if ((gpu)->instance) return NOT_SUPPORTED; } while (0)

/* --- what changes with the time ------------------------------------------------------------- */

static int at_limit(void) { return is("throttled") || is("low-power"); }

/* A training run as its readings go: busy in waves of 10 s. */
static double busy(const Gpu *gpu) {
  if (at_limit()) return 0.99;
  return 0.6 + 0.3 * sin(2 * M_PI * now() / 10 + gpu->index);
}

/* The limit in force. */
static double limit_watts(const Gpu *gpu) {
  return is("low-power") ? gpu->card->watts / 2 : gpu->card->watts;
}

static double watts(const Gpu *gpu) {
  double limit = gpu->card->watts ? limit_watts(gpu) : 100;
  return at_limit() ? limit - 1 : limit * (0.1 + 0.8 * busy(gpu));
}

/* The integral of watts() from 0, in joules. */
static double joules(const Gpu *gpu) {
  double limit = gpu->card->watts ? limit_watts(gpu) : 100, t = now();
  if (at_limit()) return (limit - 1) * t;
  double wave = (cos(gpu->index) - cos(2 * M_PI * t / 10 + gpu->index)) * 10 / (2 * M_PI);
  return limit * (0.1 * t + 0.8 * (0.6 * t + 0.3 * wave));
}

static int celsius(const Gpu *gpu) {
  if (is("throttled")) return 87;
  return (int)(35 + 30 * (1 - exp(-now() / 60)) + 6 * busy(gpu));
}

static u64 reasons(const Gpu *gpu) {
  if (is("throttled")) return 0x04 | 0x20; /* power cap, software thermal slowdown */
  if (is("low-power")) return 0x04;
  return busy(gpu) < 0.35 ? 0x01 : 0;
}

static unsigned mhz(const Gpu *gpu, unsigned domain) {
  if (domain == 2) return gpu->card->memory_mhz;
  double share = at_limit() ? 0.55 : 0.8 + 0.15 * busy(gpu);
  return (unsigned)(gpu->card->graphics_mhz * share);
}

static unsigned link_generation(const Gpu *gpu) {
  unsigned most = is("narrow") ? 3 : gpu->card->generation;
  return busy(gpu) < 0.35 ? 1 : most; /* the link slows down when there is nothing to move */
}

static u64 pcie_bytes(const Gpu *gpu) { return (u64)(now() * 500e6) + gpu->index; }

/* --- the library ---------------------------------------------------------------------------- */

PUBLIC Status nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  if (is("not-loaded") || away()) return NOT_LOADED;
  if (is("updated")) return MISMATCH;
  if (is("no-permission")) return NO_PERMISSION;
  if (is("hang-init")) hang();
  if (is("crash-init")) raise(SIGSEGV);
  started++;
  era = age();
  for (unsigned i = 0; i < 2; i++) gpus[i] = (Gpu){card_at(i), i, NULL, 0};
  for (unsigned i = 0; i < INSTANCE_COUNT; i++)
    instances[i] = (Gpu){&H100, 0, &INSTANCES[i], i};
  now();
  return OK;
}
PUBLIC Status nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
PUBLIC Status nvmlShutdown(void) {
  if (!started) return UNINITIALIZED;
  started--;
  return OK;
}

PUBLIC const char *nvmlErrorString(Status status) {
  switch (status) {
    case OK: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case TOO_SMALL: return "Insufficient Size";
    case NOT_LOADED: return "Driver Not Loaded";
    case LOST: return "GPU is lost";
    case MISMATCH: return "Driver/library version mismatch";
    case NO_DATA: return "No data";
    case OLD_VERSION: return "Argument version mismatch";
    default: return "Unknown Error";
  }
}

static Status text(char *to, unsigned size, const char *what) {
  if (strlen(what) + 1 > size) return TOO_SMALL;
  strcpy(to, what);
  return OK;
}

PUBLIC Status nvmlSystemGetDriverVersion(char *to, unsigned size) {
  if (!started) return UNINITIALIZED;
  return text(to, size, is("old-driver") ? "470.256.02" : "580.65.06");
}
PUBLIC Status nvmlSystemGetNVMLVersion(char *to, unsigned size) {
  return text(to, size, is("old-driver") ? "11.470.256.02" : "13.580.65.06");
}
PUBLIC Status nvmlSystemGetCudaDriverVersion_v2(int *version) {
  *version = is("old-driver") ? 11040 : 13000;
  return OK;
}
PUBLIC Status nvmlSystemGetCudaDriverVersion(int *version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}
PUBLIC Status nvmlSystemGetProcessName(unsigned pid, char *to, unsigned size) {
  if (is("garbage")) return text(to, size, "py\xff\xfethon");
  if (pid == 1850) return text(to, size, "/usr/lib/xorg/Xorg");
  if (pid == 4242 || pid == 31337) return text(to, size, "/usr/bin/python3");
  return NOT_FOUND;
}

PUBLIC Status nvmlDeviceGetCount_v2(unsigned *n) {
  if (is("hang-midway") && now() >= number("NVML_STUB_AT", 2)) hang();
  if (!started || away() || era != age()) return UNINITIALIZED;
  *n = count();
  return OK;
}
PUBLIC Status nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *gpu) {
  if (!started || away() || era != age()) return UNINITIALIZED;
  if (index >= count()) return INVALID;
  Status answers = alive(&gpus[index]);
  if (answers) return answers;
  *gpu = &gpus[index];
  return OK;
}
PUBLIC Status nvmlDeviceGetHandleByUUID(const char *uuid, Device *gpu) {
  unsigned index;
  if (sscanf(uuid, "GPU-0000000%u-", &index) != 1 || index >= count()) return NOT_FOUND;
  return nvmlDeviceGetHandleByIndex_v2(index, gpu);
}
PUBLIC Status nvmlDeviceGetIndex(Device gpu, unsigned *index) {
  ALIVE(gpu);
  *index = gpu->instance ? gpu->slot : gpu->index;
  return OK;
}

/* --- what a GPU is -------------------------------------------------------------------------- */

PUBLIC Status nvmlDeviceGetName(Device gpu, char *to, unsigned size) {
  ALIVE(gpu);
  if (is("crash") && gpu->index == 1) abort();
  if (is("garbage")) return text(to, size, "NVIDIA GeForce \xff\xfe\x80 RTX");
  if (!gpu->instance) return text(to, size, gpu->card->name);
  char name[96];
  snprintf(name, sizeof name, "%s MIG %s", gpu->card->name, gpu->instance->profile);
  return text(to, size, name);
}
PUBLIC Status nvmlDeviceGetUUID(Device gpu, char *to, unsigned size) {
  ALIVE(gpu);
  char id[80];
  const char *kind = gpu->instance ? "MIG" : "GPU";
  unsigned n = gpu->instance ? gpu->slot : gpu->index;
  snprintf(id, sizeof id, "%s-0000000%u-1111-2222-3333-444444444444", kind, n);
  return text(to, size, id);
}
PUBLIC Status nvmlDeviceGetSerial(Device gpu, char *to, unsigned size) {
  WHOLE(gpu);
  if (gpu->card->ecc < 1) return NOT_SUPPORTED; /* GeForce tells none */
  return text(to, size, "1320000000001");
}
typedef struct {
  char legacy[16];
  unsigned domain, bus, device, pci_device, pci_subsystem;
  char id[32];
} Pci;
PUBLIC Status nvmlDeviceGetPciInfo_v3(Device gpu, Pci *to) {
  ALIVE(gpu);
  memset(to, 0, sizeof *to);
  to->bus = gpu->index ? 0x41 : 0x01;
  to->pci_device = gpu->card->pci_device;
  snprintf(to->legacy, sizeof to->legacy, "0000:%02X:00.0", to->bus);
  snprintf(to->id, sizeof to->id, "00000000:%02X:00.0", to->bus);
  return OK;
}
PUBLIC Status nvmlDeviceGetCudaComputeCapability(Device gpu, int *major, int *minor) {
  ALIVE(gpu);
  *major = gpu->card->major;
  *minor = gpu->card->minor;
  return OK;
}
PUBLIC Status nvmlDeviceGetNumGpuCores(Device gpu, unsigned *cores) {
  WHOLE(gpu);
  *cores = gpu->card->cores;
  return OK;
}
PUBLIC Status nvmlDeviceGetMemoryBusWidth(Device gpu, unsigned *bits) {
  WHOLE(gpu);
  if (!gpu->card->memory_mhz) return NOT_SUPPORTED;
  *bits = gpu->card->gpm || gpu->card->links ? 5120 : gpu->card->mib > 12288 ? 384 : 192;
  return OK;
}
PUBLIC Status nvmlDeviceGetPersistenceMode(Device gpu, unsigned *mode) {
  WHOLE(gpu);
  *mode = 0;
  return OK;
}

typedef struct { u64 total, free, used; } Memory1;
typedef struct { unsigned version; u64 total, reserved, free, used; } Memory2;
static Status memory(Device gpu, Memory2 *to) {
  ALIVE(gpu);
  if (is("hang") && gpu->index == 1) hang();
  if (is("mig-container") && !gpu->instance) return NO_PERMISSION;
  if (is("unified") || is("silent")) return NOT_SUPPORTED;
  u64 moving = (u64)(256 * busy(gpu)) * (getenv("NVML_STUB_TIME") ? 1 : 0);
  u64 total, reserved, used;
  if (gpu->instance) {
    total = gpu->instance->mib, reserved = 0, used = gpu->instance->used_mib;
  } else {
    total = gpu->card->mib, reserved = gpu->card->reserved_mib;
    used = gpu->card->held_mib + moving + (is("foreign-process") ? 18432 : 0);
  }
  to->total = total * MIB;
  to->reserved = reserved * MIB;
  to->used = used * MIB;
  to->free = to->total - to->reserved - to->used;
  return OK;
}
PUBLIC Status nvmlDeviceGetMemoryInfo(Device gpu, Memory1 *to) {
  Memory2 all;
  Status done = memory(gpu, &all);
  if (done) return done;
  *to = (Memory1){all.total, all.free, all.used + all.reserved};
  return OK;
}
#ifndef OLD
PUBLIC Status nvmlDeviceGetMemoryInfo_v2(Device gpu, Memory2 *to) {
  if (to->version != (sizeof(Memory2) | 2 << 24)) return OLD_VERSION;
  return memory(gpu, to);
}
#endif
PUBLIC Status nvmlDeviceGetBAR1MemoryInfo(Device gpu, Memory1 *to) {
  WHOLE(gpu);
  *to = (Memory1){256 * MIB, 240 * MIB, 16 * MIB};
  return OK;
}

PUBLIC Status nvmlDeviceGetCurrPcieLinkGeneration(Device gpu, unsigned *to) {
  WHOLE(gpu);
  if (is("wsl")) return NOT_SUPPORTED;
  *to = link_generation(gpu);
  return OK;
}
PUBLIC Status nvmlDeviceGetCurrPcieLinkWidth(Device gpu, unsigned *to) {
  WHOLE(gpu);
  if (is("wsl")) return NOT_SUPPORTED;
  *to = is("narrow") ? 4 : gpu->card->lanes;
  return OK;
}
/* "Max" is what card and slot reach together; "gpu max" what the card could. */
PUBLIC Status nvmlDeviceGetMaxPcieLinkGeneration(Device gpu, unsigned *to) {
  WHOLE(gpu);
  *to = is("narrow") ? 3 : gpu->card->generation;
  return OK;
}
PUBLIC Status nvmlDeviceGetGpuMaxPcieLinkGeneration(Device gpu, unsigned *to) {
  WHOLE(gpu);
  *to = gpu->card->generation;
  return OK;
}
PUBLIC Status nvmlDeviceGetMaxPcieLinkWidth(Device gpu, unsigned *to) {
  WHOLE(gpu);
  *to = gpu->card->lanes;
  return OK;
}
PUBLIC Status nvmlDeviceGetPcieThroughput(Device gpu, unsigned counter, unsigned *kb) {
  WHOLE(gpu);
  if (is("wsl")) return NOT_SUPPORTED;
  *kb = (unsigned)((counter ? 900e3 : 200e3) * busy(gpu)); /* 0 sent, 1 received */
  return OK;
}

PUBLIC Status nvmlDeviceGetEccMode(Device gpu, unsigned *current, unsigned *pending) {
  WHOLE(gpu);
  if (gpu->card->ecc < 0) return NOT_SUPPORTED;
  *current = *pending = gpu->card->ecc;
  return OK;
}
PUBLIC Status nvmlDeviceGetTotalEccErrors(Device gpu, int error, int counter, u64 *to) {
  WHOLE(gpu);
  if (gpu->card->ecc < 1) return NOT_SUPPORTED;
  *to = error == 0 && counter == 1 ? 3 : 0; /* corrected ones since the card was made */
  return OK;
}

/* --- live readings --------------------------------------------------------------------------- */

typedef struct { unsigned gpu, memory; } Rates;
PUBLIC Status nvmlDeviceGetUtilizationRates(Device gpu, Rates *to) {
  ALIVE(gpu);
  if (divided() || is("wsl")) return NOT_SUPPORTED;
  *to = (Rates){(unsigned)(100 * busy(gpu)), (unsigned)(45 * busy(gpu))};
  return OK;
}
static Status engine(Device gpu, unsigned *percent, unsigned *period) {
  ALIVE(gpu);
  if (divided()) return NOT_SUPPORTED;
  *percent = 0;
  *period = 167000;
  return OK;
}
PUBLIC Status nvmlDeviceGetEncoderUtilization(Device gpu, unsigned *percent, unsigned *period) {
  return engine(gpu, percent, period);
}
PUBLIC Status nvmlDeviceGetDecoderUtilization(Device gpu, unsigned *percent, unsigned *period) {
  return engine(gpu, percent, period);
}

PUBLIC Status nvmlDeviceGetTemperature(Device gpu, int sensor, unsigned *to) {
  WHOLE(gpu);
  if (sensor) return INVALID;
  *to = celsius(gpu);
  return OK;
}
#ifndef OLD
typedef struct { unsigned version; int sensor; int celsius; } Temperature;
PUBLIC Status nvmlDeviceGetTemperatureV(Device gpu, Temperature *to) {
  WHOLE(gpu);
  if (to->version != (sizeof(Temperature) | 1 << 24)) return OLD_VERSION;
  if (to->sensor) return INVALID;
  to->celsius = celsius(gpu);
  return OK;
}
#endif
PUBLIC Status nvmlDeviceGetTemperatureThreshold(Device gpu, int kind, unsigned *to) {
  WHOLE(gpu);
  if (kind < 0 || kind > 3) return NOT_SUPPORTED;
  *to = (unsigned[]){100, 95, 93, 84}[kind]; /* shutdown, slowdown, memory, the most for the GPU */
  return OK;
}
PUBLIC Status nvmlDeviceGetFanSpeed(Device gpu, unsigned *percent) {
  WHOLE(gpu);
  if (is("laptop") || is("unified") || gpu->card->links) return NOT_SUPPORTED;
  *percent = is("throttled") ? 100 : 30 + (unsigned)(20 * busy(gpu));
  return OK;
}
PUBLIC Status nvmlDeviceGetPerformanceState(Device gpu, unsigned *state) {
  WHOLE(gpu);
  *state = busy(gpu) < 0.35 ? 8 : 2;
  return OK;
}

static int power_told(const Gpu *gpu) { return gpu->card->watts > 0; }
PUBLIC Status nvmlDeviceGetPowerUsage(Device gpu, unsigned *mw) {
  WHOLE(gpu);
  if (is("unified")) return NOT_SUPPORTED;
  *mw = (unsigned)(1000 * watts(gpu));
  return OK;
}
PUBLIC Status nvmlDeviceGetEnforcedPowerLimit(Device gpu, unsigned *mw) {
  WHOLE(gpu);
  if (!power_told(gpu)) return NOT_SUPPORTED;
  *mw = (unsigned)(1000 * limit_watts(gpu));
  return OK;
}
PUBLIC Status nvmlDeviceGetPowerManagementLimit(Device gpu, unsigned *mw) {
  return nvmlDeviceGetEnforcedPowerLimit(gpu, mw);
}
PUBLIC Status nvmlDeviceGetPowerManagementDefaultLimit(Device gpu, unsigned *mw) {
  WHOLE(gpu);
  if (!power_told(gpu)) return NOT_SUPPORTED;
  *mw = 1000 * gpu->card->watts;
  return OK;
}
PUBLIC Status nvmlDeviceGetPowerManagementLimitConstraints(Device gpu, unsigned *least,
                                                           unsigned *most) {
  WHOLE(gpu);
  if (!power_told(gpu)) return NOT_SUPPORTED;
  *least = 1000 * gpu->card->least_watts;
  *most = 1000 * gpu->card->most_watts;
  return OK;
}
PUBLIC Status nvmlDeviceGetTotalEnergyConsumption(Device gpu, u64 *mj) {
  WHOLE(gpu);
  if (!power_told(gpu)) return NOT_SUPPORTED;
  *mj = (u64)(1000 * joules(gpu)) + 5000000;
  return OK;
}

PUBLIC Status nvmlDeviceGetClockInfo(Device gpu, unsigned domain, unsigned *to) {
  WHOLE(gpu);
  if (domain > 3) return INVALID;
  if (!mhz(gpu, domain)) return NOT_SUPPORTED;
  *to = mhz(gpu, domain);
  return OK;
}
PUBLIC Status nvmlDeviceGetMaxClockInfo(Device gpu, unsigned domain, unsigned *to) {
  WHOLE(gpu);
  if (domain > 3) return INVALID;
  *to = domain == 2 ? gpu->card->memory_mhz : gpu->card->graphics_mhz;
  return *to ? OK : NOT_SUPPORTED;
}
PUBLIC Status nvmlDeviceGetCurrentClocksThrottleReasons(Device gpu, u64 *to) {
  WHOLE(gpu);
  if (is("wsl")) return NOT_SUPPORTED;
  *to = reasons(gpu);
  return OK;
}
#ifndef OLD
PUBLIC Status nvmlDeviceGetCurrentClocksEventReasons(Device gpu, u64 *to) {
  return nvmlDeviceGetCurrentClocksThrottleReasons(gpu, to);
}
#endif
typedef struct { u64 reference_us, violation_ns; } Violation;
PUBLIC Status nvmlDeviceGetViolationStatus(Device gpu, int policy, Violation *to) {
  WHOLE(gpu);
  if (policy > 5 && policy != 10 && policy != 11) return INVALID;
  to->reference_us = micros();
  to->violation_ns = is("throttled") && policy < 2 ? (u64)(now() * 1e9) : 0;
  return OK;
}

typedef union {
  double f64;
  unsigned u32;
  unsigned long ul;
  u64 u64;
  long long s64;
  int s32;
  unsigned short u16;
} Value;
typedef struct {
  unsigned field, scope;
  long long timestamp, latency;
  unsigned type;
  Status status;
  Value value;
} Field;
PUBLIC Status nvmlDeviceGetFieldValues(Device gpu, int n, Field *fields) {
  WHOLE(gpu);
  for (int i = 0; i < n; i++) {
    Field *to = &fields[i];
    u64 violated = is("throttled") ? (u64)(now() * 1e9) : 0;
    to->timestamp = micros();
    to->latency = 12;
    to->type = 3; /* unsigned long long */
    to->status = OK;
    switch (to->field) {
      case 1: to->type = 1; to->value.u32 = gpu->card->ecc == 1; break;
      case 74: case 75: case 269: to->value.u64 = violated; break;
      case 76: case 77: case 78: case 79: case 80: case 81: case 270: case 271:
        to->value.u64 = 0; break;
      case 82:
        if (gpu->card->links) { to->type = 1; to->value.u32 = celsius(gpu) + 8; }
        else to->status = NOT_SUPPORTED;
        break;
      case 83:
        if (power_told(gpu)) to->value.u64 = (u64)(1000 * joules(gpu)) + 5000000;
        else to->status = NOT_SUPPORTED;
        break;
      case 91: to->type = 1; to->value.u32 = gpu->card->links; break;
      case 94: to->value.u64 = 0; break;
      case 185: case 186: to->type = 1; to->value.u32 = (unsigned)(1000 * watts(gpu)); break;
      case 197: to->value.u64 = pcie_bytes(gpu) / 4; break;
      case 198: to->value.u64 = pcie_bytes(gpu); break;
      case 199: to->type = 1; to->value.u32 = gpu->card->gpm; break;
      default: to->status = NOT_SUPPORTED;
    }
    if (is("old-driver") && to->field > 150) to->status = NOT_SUPPORTED;
  }
  return OK;
}

/* --- processes -------------------------------------------------------------------------------- */

typedef struct { unsigned pid; u64 used; unsigned gpu_instance, compute_instance; } Process;
static const unsigned NOT_DIVIDED = 0xFFFFFFFF;
static Status listed(const Process *all, unsigned n, unsigned *size, Process *to) {
  unsigned room = *size;
  *size = n;
  if (!n) return OK;
  if (!to || room < n) return TOO_SMALL;
  memcpy(to, all, n * sizeof *all);
  return OK;
}
static u64 told(u64 mib) { return is("wsl") ? ~0ULL : mib * MIB; }
static Status computing(Device gpu, unsigned *size, Process *to) {
  ALIVE(gpu);
  if (is("hidden-processes")) return NO_PERMISSION;
  if (is("mig-container") && !gpu->instance) return NO_PERMISSION;
  if (divided()) {
    Process all[] = {{4242, told(8100), 2, 0}, {31337, told(4000), 9, 0}};
    if (!gpu->instance) return listed(all, gpu->index ? 0 : 2, size, to);
    return gpu->slot > 1 ? listed(NULL, 0, size, to) : listed(&all[gpu->slot], 1, size, to);
  }
  if (is("foreign-process")) {
    Process all[] = {{31337, told(18432), NOT_DIVIDED, NOT_DIVIDED}};
    return listed(all, 1, size, to);
  }
  Process all[] = {{4242, told(400), NOT_DIVIDED, NOT_DIVIDED}};
  return listed(all, gpu->index ? 0 : 1, size, to);
}
static Status drawing(Device gpu, unsigned *size, Process *to) {
  ALIVE(gpu);
  if (is("hidden-processes")) return NO_PERMISSION;
  Process all[] = {{1850, told(380), NOT_DIVIDED, NOT_DIVIDED}};
  int desktop = gpu->index == 0 && !gpu->card->links && !gpu->instance;
  return listed(all, desktop, size, to);
}
#ifdef OLD
#define RUNNING(kind) nvmlDeviceGet##kind##RunningProcesses_v2
#else
#define RUNNING(kind) nvmlDeviceGet##kind##RunningProcesses_v3
#endif
PUBLIC Status RUNNING(Compute)(Device gpu, unsigned *size, Process *to) {
  return computing(gpu, size, to);
}
PUBLIC Status RUNNING(Graphics)(Device gpu, unsigned *size, Process *to) {
  return drawing(gpu, size, to);
}
typedef struct { unsigned pid; u64 at; unsigned sm, memory, encoder, decoder; } Usage;
PUBLIC Status nvmlDeviceGetProcessUtilization(Device gpu, Usage *to, unsigned *size, u64 since) {
  (void)since;
  WHOLE(gpu);
  if (divided() || is("wsl")) return NOT_SUPPORTED;
  if (gpu->index) return NOT_FOUND; /* no sample: not an error */
  unsigned room = *size;
  *size = 1;
  if (!to || room < 1) return TOO_SMALL;
  *to = (Usage){is("foreign-process") ? 31337 : 4242, micros(), (unsigned)(100 * busy(gpu)), 20, 0, 0};
  return OK;
}

/* --- several GPUs ----------------------------------------------------------------------------- */

PUBLIC Status nvmlDeviceGetTopologyCommonAncestor(Device one, Device other, unsigned *level) {
  ALIVE(one);
  ALIVE(other);
  *level = one == other ? 0 : is("nvlink") ? 50 : 30; /* itself; across sockets; host bridge */
  return OK;
}
PUBLIC Status nvmlDeviceGetP2PStatus(Device one, Device other, unsigned kind, unsigned *status) {
  ALIVE(one);
  ALIVE(other);
  (void)kind;
  *status = one->card->links ? 0 : 1; /* GeForce: the chipset does not support it */
  return OK;
}
PUBLIC Status nvmlDeviceGetNvLinkState(Device gpu, unsigned link, unsigned *active) {
  WHOLE(gpu);
  if (!gpu->card->links) return NOT_SUPPORTED;
  if (link >= (unsigned)gpu->card->links) return INVALID;
  *active = is("nvlink");
  return OK;
}
PUBLIC Status nvmlDeviceGetNvLinkVersion(Device gpu, unsigned link, unsigned *version) {
  WHOLE(gpu);
  if (!gpu->card->links) return NOT_SUPPORTED;
  if (link >= (unsigned)gpu->card->links) return INVALID;
  *version = gpu->card == &H100 ? 6 : 4; /* nvml.h's numbers: 4 is NVLink 3.0, 6 is 4.0 */
  return OK;
}
PUBLIC Status nvmlDeviceGetNvLinkRemotePciInfo_v2(Device gpu, unsigned link, Pci *to) {
  unsigned active = 0;
  Status done = nvmlDeviceGetNvLinkState(gpu, link, &active);
  if (done || !active) return done ? done : NOT_SUPPORTED;
  return nvmlDeviceGetPciInfo_v3(&gpus[!gpu->index], to);
}

/* --- divided GPUs (MIG) ----------------------------------------------------------------------- */

PUBLIC Status nvmlDeviceGetMigMode(Device gpu, unsigned *current, unsigned *pending) {
  WHOLE(gpu);
  if (!gpu->card->mig) return NOT_SUPPORTED;
  *current = divided();
  *pending = divided() || is("mig-pending");
  return OK;
}
PUBLIC Status nvmlDeviceGetMaxMigDeviceCount(Device gpu, unsigned *n) {
  WHOLE(gpu);
  *n = gpu->card->mig ? 7 : 0;
  return OK;
}
PUBLIC Status nvmlDeviceIsMigDeviceHandle(Device gpu, unsigned *is_instance) {
  ALIVE(gpu);
  *is_instance = gpu->instance != NULL;
  return OK;
}
PUBLIC Status nvmlDeviceGetMigDeviceHandleByIndex(Device gpu, unsigned slot, Device *instance) {
  WHOLE(gpu);
  if (!gpu->card->mig) return NOT_SUPPORTED;
  if (slot >= 7) return INVALID;
  if (is("mig-container") && slot) return NOT_FOUND;
  /* The second slot stays empty: an empty one is skipped, it does not end the list. */
  unsigned place = slot ? slot - 1 : 0;
  if (gpu->index) return NOT_FOUND;
  if (!divided() || slot == 1 || place >= INSTANCE_COUNT) return NOT_FOUND;
  *instance = &instances[place];
  return OK;
}
PUBLIC Status nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device instance, Device *gpu) {
  ALIVE(instance);
  if (!instance->instance) return INVALID;
  *gpu = &gpus[0];
  return OK;
}
PUBLIC Status nvmlDeviceGetGpuInstanceId(Device instance, unsigned *id) {
  ALIVE(instance);
  if (!instance->instance) return INVALID;
  *id = instance->instance->instance;
  return OK;
}
PUBLIC Status nvmlDeviceGetComputeInstanceId(Device instance, unsigned *id) {
  ALIVE(instance);
  if (!instance->instance) return INVALID;
  *id = 0;
  return OK;
}
typedef struct {
  unsigned sm, copy, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
  u64 mib;
} Attributes;
PUBLIC Status nvmlDeviceGetAttributes_v2(Device instance, Attributes *to) {
  ALIVE(instance);
  const Instance *of = instance->instance;
  if (!of) return NOT_SUPPORTED;
  *to = (Attributes){of->sm, of->copy, of->decoders, 0, of->jpeg, 0, of->slices, of->slices, of->mib};
  return OK;
}

/* What GPUs can be divided into: nvml.h's index, then what nvidia-smi mig -lgip and -lgipp print
 * (MIG user guide, "Supported MIG Profiles" and "Getting Started"; H100 80GB and A100 80GB). Those of
 * the card that no catalog has are made up. */
typedef struct { unsigned start, size; } Place;
typedef struct {
  unsigned index, id, slices, count, sm, copy, nvdec, jpeg, ofa, mib;
  const char *name;
  unsigned size, n, starts[8];
} Profile;
static const Profile OF_H100[] = {
  {0, 19, 1, 7, 16, 1, 1, 1, 0, 9984, "MIG 1g.10gb", 1, 7, {0, 1, 2, 3, 4, 5, 6}},
  {1, 14, 2, 3, 32, 2, 2, 2, 0, 20096, "MIG 2g.20gb", 2, 3, {0, 2, 4}},
  {2, 9, 3, 2, 60, 3, 3, 3, 0, 40448, "MIG 3g.40gb", 4, 2, {0, 4}},
  {3, 5, 4, 1, 64, 4, 4, 4, 0, 40448, "MIG 4g.40gb", 4, 1, {0}},
  {4, 0, 7, 1, 132, 8, 7, 7, 1, 81152, "MIG 7g.80gb", 8, 1, {0}},
  {7, 20, 1, 1, 16, 1, 1, 1, 1, 9984, "MIG 1g.10gb+me", 1, 7, {0, 1, 2, 3, 4, 5, 6}},
  {9, 15, 1, 4, 26, 1, 1, 1, 0, 20096, "MIG 1g.20gb", 2, 4, {0, 2, 4, 6}},
};
static const Profile OF_A100[] = {
  {0, 19, 1, 7, 14, 1, 0, 0, 0, 9728, "MIG 1g.10gb", 1, 7, {0, 1, 2, 3, 4, 5, 6}},
  {1, 14, 2, 3, 28, 2, 1, 0, 0, 19968, "MIG 2g.20gb", 2, 3, {0, 2, 4}},
  {2, 9, 3, 2, 42, 3, 2, 0, 0, 40192, "MIG 3g.40gb", 4, 2, {0, 4}},
  {3, 5, 4, 1, 56, 4, 2, 0, 0, 40192, "MIG 4g.40gb", 4, 1, {0}},
  {4, 0, 7, 1, 98, 7, 5, 1, 1, 80384, "MIG 7g.80gb", 8, 1, {0}},
  {7, 20, 1, 1, 14, 1, 1, 1, 1, 9728, "MIG 1g.10gb+me", 1, 7, {0, 1, 2, 3, 4, 5, 6}},
  {9, 15, 1, 4, 14, 1, 1, 0, 0, 19968, "MIG 1g.20gb", 2, 4, {0, 2, 4, 6}},
};
/* Names as driver 535 has them, a profile less, less memory, and a 2g that may begin at 6. */
static const Profile OTHERWISE[] = {
  {0, 19, 1, 7, 16, 1, 1, 1, 0, 9984, "MIG 1g.10gb", 1, 7, {0, 1, 2, 3, 4, 5, 6}},
  {1, 14, 2, 4, 32, 2, 1, 1, 0, 19072, "MIG 2g.20gb", 2, 4, {0, 2, 4, 6}},
  {2, 9, 3, 2, 60, 3, 3, 3, 0, 40448, "MIG 3g.39gb", 4, 2, {0, 4}},
  {3, 5, 4, 1, 64, 4, 4, 4, 0, 40448, "MIG 4g.39gb", 4, 1, {0}},
  {4, 0, 7, 1, 132, 8, 7, 7, 1, 81152, "MIG 7g.79gb", 8, 1, {0}},
  {7, 20, 1, 1, 16, 1, 1, 1, 1, 9984, "MIG 1g.10gb+me", 1, 7, {0, 1, 2, 3, 4, 5, 6}},
};
static const Profile OF_STRANGE[] = {
  {0, 14, 1, 5, 28, 1, 1, 1, 0, 24576, "MIG 1g.25gb", 2, 5, {0, 2, 4, 6, 8}},
  {1, 5, 2, 2, 56, 2, 2, 2, 0, 49152, "MIG 2g.50gb", 4, 2, {0, 4}},
  {4, 0, 5, 1, 144, 5, 5, 5, 1, 126976, "MIG 5g.128gb", 10, 1, {0}},
};
#define COUNTED(profiles) (*n = sizeof profiles / sizeof *profiles, profiles)
static const Profile *profiles_of(Device gpu, unsigned *n) {
  if (gpu->card == &A100) return COUNTED(OF_A100);
  if (is("mig-other")) return COUNTED(OTHERWISE);
  if (gpu->card == &DIVISIBLE) return COUNTED(OF_STRANGE);
  return COUNTED(OF_H100);
}
static const Profile *profile_of(Device gpu, unsigned id) {
  unsigned n;
  const Profile *all = profiles_of(gpu, &n);
  for (unsigned i = 0; i < n; i++)
    if (all[i].id == id) return &all[i];
  return NULL;
}
static int only_for_administrators(void) {
  return is("mig-user") || is("mig-container") || is("mig-strange-user");
}

typedef struct {
  unsigned id, p2p, slices, count, sm, copy, nvdec, nvenc, jpeg, ofa;
  u64 mib;
} ProfileInfo1;
typedef struct {
  unsigned version, id, p2p, slices, count, sm, copy, nvdec, nvenc, jpeg, ofa;
  u64 mib;
  char name[96];
} ProfileInfo2;
static Status described(Device gpu, unsigned index, const Profile **to) {
  WHOLE(gpu);
  if (index >= 0x12) return INVALID;
  if (!gpu->card->mig || is("mig-off")) return NOT_SUPPORTED;
  if (is("mig-lost") && index > 2) return LOST;
  unsigned n;
  const Profile *all = profiles_of(gpu, &n);
  for (unsigned i = 0; i < n; i++)
    if (all[i].index == index) return *to = &all[i], OK;
  return NOT_SUPPORTED;
}
PUBLIC Status nvmlDeviceGetGpuInstanceProfileInfo(Device gpu, unsigned index, ProfileInfo1 *to) {
  const Profile *of;
  Status done = described(gpu, index, &of);
  if (done) return done;
  *to = (ProfileInfo1){of->id, 0, of->slices, of->count, of->sm, of->copy, of->nvdec, 0, of->jpeg,
                       of->ofa, of->mib};
  return OK;
}
#ifndef OLD
PUBLIC Status nvmlDeviceGetGpuInstanceProfileInfoV(Device gpu, unsigned index, ProfileInfo2 *to) {
  if (to->version != (sizeof(ProfileInfo2) | 2 << 24)) return OLD_VERSION;
  const Profile *of;
  Status done = described(gpu, index, &of);
  if (done) return done;
  *to = (ProfileInfo2){to->version, of->id, 0, of->slices, of->count, of->sm, of->copy, of->nvdec,
                       0, of->jpeg, of->ofa, of->mib, ""};
  return text(to->name, sizeof to->name, of->name);
}
#endif
PUBLIC Status nvmlDeviceGetGpuInstancePossiblePlacements_v2(Device gpu, unsigned id, Place *to,
                                                            unsigned *n) {
  WHOLE(gpu);
  if (only_for_administrators()) return NO_PERMISSION;
  if (is("mig-hang")) hang();
  const Profile *of = profile_of(gpu, id);
  if (!of) return INVALID;
  if (is("mig-garbage")) return *n = 0x7FFFFFFF, OK;
  if (to && *n < of->n) return TOO_SMALL;
  *n = of->n;
  for (unsigned i = 0; to && i < of->n; i++) to[i] = (Place){of->starts[i], of->size};
  return OK;
}

/* Where the instances lie: by profile's id and instance, as INSTANCES has them. */
typedef struct { unsigned profile, instance, start, size; } Lying;
static const Lying LYING[] = {{9, 2, 4, 4}, {19, 9, 2, 1}, {19, 10, 3, 1}};
PUBLIC Status nvmlDeviceGetGpuInstances(Device gpu, unsigned id, const Lying **to, unsigned *n) {
  WHOLE(gpu);
  if (only_for_administrators()) return NO_PERMISSION;
  if (!divided()) return NOT_SUPPORTED;
  *n = 0;
  for (unsigned i = 0; i < INSTANCE_COUNT && !gpu->index; i++)
    if (LYING[i].profile == id) to[(*n)++] = &LYING[i];
  return OK;
}
typedef struct { Device gpu; unsigned id, profile; Place place; } InstanceInfo;
PUBLIC Status nvmlGpuInstanceGetInfo(const Lying *instance, InstanceInfo *to) {
  *to = (InstanceInfo){&gpus[0], instance->instance, instance->profile,
                       {instance->start, instance->size}};
  return OK;
}

/* --- GPM: the profiling counters of Hopper and later ------------------------------------------- */

typedef struct { unsigned version, supported; } GpmSupport;
typedef struct { double at; double share; int taken; } GpmTaken;
typedef struct {
  unsigned metric;
  Status status;
  double value;
  const char *short_name, *long_name, *unit;
} GpmMetric;
typedef struct {
  unsigned version, n;
  GpmTaken *earlier, *later;
  GpmMetric metrics[1]; /* as many as the caller's header knows */
} GpmQuestion;
#ifndef OLD
PUBLIC Status nvmlGpmQueryDeviceSupport(Device gpu, GpmSupport *to) {
  WHOLE(gpu);
  if (to->version != 1) return OLD_VERSION;
  to->supported = gpu->card->gpm;
  return OK;
}
PUBLIC Status nvmlGpmSampleAlloc(GpmTaken **to) {
  *to = calloc(1, sizeof **to);
  return OK;
}
PUBLIC Status nvmlGpmSampleFree(GpmTaken *sample) {
  free(sample);
  return OK;
}
static Status sampled(Device gpu, double share, GpmTaken *to) {
  WHOLE(gpu);
  if (!gpu->card->gpm) return NOT_SUPPORTED;
  *to = (GpmTaken){now(), share * busy(gpu), 1};
  return OK;
}
PUBLIC Status nvmlGpmSampleGet(Device gpu, GpmTaken *to) { return sampled(gpu, 1, to); }
PUBLIC Status nvmlGpmMigSampleGet(Device gpu, unsigned instance, GpmTaken *to) {
  for (unsigned i = 0; i < INSTANCE_COUNT; i++)
    if (INSTANCES[i].instance == instance && divided()) return sampled(gpu, i < 2 ? 1 : 0, to);
  return INVALID;
}
PUBLIC Status nvmlGpmMetricsGet(GpmQuestion *to) {
  if (to->version != 1) return OLD_VERSION;
  if (!to->earlier || !to->later || !to->earlier->taken || !to->later->taken) return INVALID;
  double share = (to->earlier->share + to->later->share) / 2;
  for (unsigned i = 0; i < to->n; i++) {
    GpmMetric *each = &to->metrics[i];
    each->status = OK;
    switch (each->metric) {
      case 1: each->value = 100 * share; break;  /* graphics or compute active */
      case 2: each->value = 80 * share; break;   /* SMs busy */
      case 3: each->value = 35 * share; break;   /* warps */
      case 5: each->value = 40 * share; break;   /* any tensor core */
      case 10: each->value = 50 * share; break;  /* DRAM bandwidth */
      case 20: each->value = 200 * share; break; /* PCIe, MiB/s */
      case 21: each->value = 900 * share; break;
      case 60: case 61: each->value = 0; break;  /* NVLink, MiB/s */
      default: each->status = NOT_SUPPORTED;
    }
  }
  return OK;
}
#endif
