/* The replay of allocator.py, compiled: the same rules under the same names, event by event.
 *
 * allocator.py says what they are and where they come from, and runs wherever this is not
 * built. A test holds both to the same answers. It needs neither Python nor a C library, so
 * that any compiler makes it for any system: its memory comes from the caller. */

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

enum {
    SMALL = 1 << 20,
    SMALL_SEGMENT = 2 << 20,
    LARGE_SEGMENT = 20 << 20,
    MIN_LARGE = 10 << 20,
    ROUND_LARGE = 2 << 20
};
static const int64_t ENDLESS = (int64_t)1 << 60;

typedef struct Block Block;
typedef struct Pool Pool;

struct Block {
    int64_t size, address;
    Block *prev, *next;
    Pool *pool;
    int free, mapped;
};

_Static_assert(sizeof(Block) <= 6 * sizeof(int64_t), "allocator.py counts words");

/* Blocks in the order that its user keeps. */
typedef struct {
    Block **at;
    size_t count;
} List;

struct Pool {
    int64_t page;
    List blocks; /* free ones, by size, then address */
    List gaps;   /* of an expandable segment, by address */
};

typedef struct {
    int64_t limit; /* negative: none */
    int64_t reserved, reserved_peak, releases, end;
    Pool small, large;
    Block *blocks, *unused; /* unused ones are linked by next */
    size_t used, room;
    Block **seen;
    int starved; /* there were too few blocks: the answer is void */
} Allocator;

static int64_t up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

static void list_insert(List *list, size_t place, Block *block) {
    for (size_t at = list->count++; at > place; at--) list->at[at] = list->at[at - 1];
    list->at[place] = block;
}

static void list_remove(List *list, size_t place) {
    list->count--;
    for (size_t at = place; at < list->count; at++) list->at[at] = list->at[at + 1];
}

static Block *new_block(Allocator *a, Pool *pool, int64_t address, int64_t size) {
    Block *block = a->unused;
    if (block) {
        a->unused = block->next;
    } else if (a->used < a->room) {
        block = a->blocks + a->used++;
    } else {
        a->starved = 1;
        return NULL;
    }
    block->size = size;
    block->address = address;
    block->pool = pool;
    block->prev = block->next = NULL;
    block->free = block->mapped = 1;
    return block;
}

static void drop(Allocator *a, Block *block) {
    block->next = a->unused;
    a->unused = block;
}

/* Cut the block to size and return what is left behind it. */
static Block *split(Allocator *a, Block *block, int64_t size) {
    Block *rest = new_block(a, block->pool, block->address + size, block->size - size);
    if (!rest) return NULL;
    rest->mapped = block->mapped;
    rest->prev = block;
    rest->next = block->next;
    if (rest->next) rest->next->prev = rest;
    block->next = rest;
    block->size = size;
    return rest;
}

static void swallow_next(Allocator *a, Block *block) {
    Block *swallowed = block->next;
    block->size += swallowed->size;
    block->next = swallowed->next;
    if (block->next) block->next->prev = block;
    drop(a, swallowed);
}

/* The first free block that is not before (size, address). */
static size_t pool_find(const Pool *pool, int64_t size, int64_t address) {
    size_t low = 0, high = pool->blocks.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const Block *block = pool->blocks.at[middle];
        if (block->size < size || (block->size == size && block->address < address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void pool_add(Block *block) {
    if (!block) return;
    size_t place = pool_find(block->pool, block->size, block->address);
    list_insert(&block->pool->blocks, place, block);
}

static void pool_remove(Block *block) {
    list_remove(&block->pool->blocks, pool_find(block->pool, block->size, block->address));
}

/* Join a freed block with its free neighbours, put it in, and return it. */
static Block *add_merged(Allocator *a, Block *block) {
    Block *before = block->prev, *after = block->next;
    if (after && after->free && after->mapped) {
        pool_remove(after);
        swallow_next(a, block);
    }
    if (before && before->free && before->mapped) {
        pool_remove(before);
        swallow_next(a, before);
        block = before;
    }
    pool_add(block);
    return block;
}

static void reserve(Allocator *a, int64_t nbytes) {
    a->reserved += nbytes;
    if (a->reserved > a->reserved_peak) a->reserved_peak = a->reserved;
}

static int over(const Allocator *a, int64_t nbytes) {
    return a->limit >= 0 && a->reserved + nbytes > a->limit;
}

/* Segments from cudaMalloc, split and joined within themselves. */

static void native_release(Allocator *a) {
    Pool *pools[] = {&a->large, &a->small};
    a->releases++;
    for (int i = 0; i < 2; i++) {
        List *blocks = &pools[i]->blocks;
        size_t held = 0;
        for (size_t at = 0; at < blocks->count; at++) {
            Block *block = blocks->at[at];
            if (block->prev || block->next) {
                blocks->at[held++] = block;
            } else {
                a->reserved -= block->size;
                drop(a, block);
            }
        }
        blocks->count = held;
    }
}

static Block *native_segment(Allocator *a, Pool *pool, int64_t size) {
    int64_t nbytes = pool == &a->large && size >= MIN_LARGE ? up(size, ROUND_LARGE) : pool->page;
    if (over(a, nbytes)) {
        native_release(a);
        if (over(a, nbytes)) return NULL;
    }
    Block *block = new_block(a, pool, a->end, nbytes);
    a->end += nbytes;
    reserve(a, nbytes);
    return block;
}

static Block *native_malloc(Allocator *a, int64_t size) {
    Pool *pool = size <= SMALL ? &a->small : &a->large;
    size_t found = pool_find(pool, size, INT64_MIN);
    Block *block;
    if (found < pool->blocks.count) {
        block = pool->blocks.at[found];
        list_remove(&pool->blocks, found);
    } else if (!(block = native_segment(a, pool, size))) {
        return NULL;
    }
    int64_t rest = block->size - size;
    if (rest > SMALL || (rest && pool == &a->small)) pool_add(split(a, block, size));
    block->free = 0;
    return block;
}

/* One segment a pool, mapped page by page at its lowest gap that is large enough. */

static size_t gap_place(const List *gaps, const Block *gap) {
    size_t place = 0;
    while (place < gaps->count && gaps->at[place]->address < gap->address) place++;
    return place;
}

static int64_t reach(const Block *block) {
    const Block *next = block->next;
    return next && !next->mapped ? block->size + next->size : block->size;
}

static Block *best_fit(Pool *pool, int64_t size) {
    size_t found = pool_find(pool, size, INT64_MIN);
    if (found == pool->blocks.count) return NULL;
    Block *block = pool->blocks.at[found];
    while (found + 1 < pool->blocks.count) {
        Block *other = pool->blocks.at[found + 1];
        if (reach(other) >= reach(block)) break;
        block = other;
        found++;
    }
    return block;
}

static int has_room(const Block *block, int64_t size) {
    int64_t total = 0;
    for (; block && block->free && total < size; block = block->next) total += block->size;
    return total >= size;
}

static Block *map_gap(Allocator *a, Block *gap, int64_t size) {
    Pool *pool = gap->pool;
    int64_t nbytes = up(size, pool->page);
    if (over(a, nbytes)) return NULL;
    size_t place = gap_place(&pool->gaps, gap);
    if (nbytes < gap->size) {
        Block *rest = split(a, gap, nbytes);
        if (!rest) return NULL;
        pool->gaps.at[place] = rest;
    } else {
        list_remove(&pool->gaps, place);
    }
    gap->mapped = 1;
    reserve(a, nbytes);
    return add_merged(a, gap);
}

static int64_t least(int64_t one, int64_t other) { return one < other ? one : other; }

static Block *expand(Allocator *a, Pool *pool, int64_t size) {
    Block *block = NULL;
    for (size_t at = 0; at < pool->gaps.count && !block; at++) {
        Block *gap = pool->gaps.at[at], *before = gap->prev;
        Block *from = before && before->free ? before : gap;
        if (has_room(from, size)) block = from;
    }
    if (block && !block->mapped) block = map_gap(a, block, least(block->size, size));
    while (block && block->size < size)
        block = map_gap(a, block->next, least(size - block->size, block->next->size));
    return block;
}

static void unmap(Allocator *a, Block *block) {
    Pool *pool = block->pool;
    int64_t begin = up(block->address, pool->page);
    int64_t end = (block->address + block->size) / pool->page * pool->page;
    if (begin >= end) return;
    pool_remove(block);
    if (begin > block->address) {
        Block *front = block;
        if (!(block = split(a, front, begin - front->address))) return;
        pool_add(front);
    }
    if (block->size > end - begin) pool_add(split(a, block, end - begin));
    block->mapped = 0;
    a->reserved -= end - begin;
    if (block->next && !block->next->mapped) {
        list_remove(&pool->gaps, gap_place(&pool->gaps, block->next));
        swallow_next(a, block);
    }
    if (block->prev && !block->prev->mapped)
        swallow_next(a, block->prev);
    else
        list_insert(&pool->gaps, gap_place(&pool->gaps, block), block);
}

static void expandable_release(Allocator *a) {
    Pool *pools[] = {&a->large, &a->small};
    a->releases++;
    for (int i = 0; i < 2; i++) {
        size_t count = pools[i]->blocks.count;
        for (size_t at = 0; at < count; at++) a->seen[at] = pools[i]->blocks.at[at];
        for (size_t at = 0; at < count && !a->starved; at++) unmap(a, a->seen[at]);
    }
}

static Block *expandable_malloc(Allocator *a, int64_t size) {
    Pool *pool = size <= SMALL ? &a->small : &a->large;
    Block *block = best_fit(pool, size);
    if (!block) block = expand(a, pool, size);
    if (!block) {
        expandable_release(a);
        block = expand(a, pool, size);
    }
    if (!block) return NULL;
    pool_remove(block);
    if (block->size > size) pool_add(split(a, block, size));
    block->free = 0;
    return block;
}

static void start(Allocator *a, int expandable, int64_t *memory, int64_t room) {
    Pool *pools[] = {&a->small, &a->large};
    a->room = (size_t)room;
    a->blocks = (Block *)memory;
    Block **lists = (Block **)(memory + 6 * room);
    a->small.page = SMALL_SEGMENT;
    a->large.page = LARGE_SEGMENT;
    a->seen = lists;
    for (int i = 0; i < 2; i++) {
        pools[i]->blocks.at = lists + (2 * i + 1) * room;
        pools[i]->gaps.at = lists + (2 * i + 2) * room;
        if (!expandable) continue;
        Block *gap = new_block(a, pools[i], 0, ENDLESS);
        if (!gap) return;
        gap->mapped = 0;
        list_insert(&pools[i]->gaps, 0, gap);
    }
}

/* Replay births (key > 0) and deaths (key < 0) of rounded sizes.
 *
 * limit: bytes for segments, negative for none. block: of each event, the bytes that a birth
 * got, or that a death gave back as a negative number. live: as many words as the highest key
 * and one. block and live come as zeros. memory: 11 words for each of so many blocks (room).
 * out: reserved peak, releases, the event that failed or -1. Returns 1 where room is too
 * little, and nothing else counts then, or 0. */
EXPORTED int trainwright_replay(int64_t count, const int64_t *key, const int64_t *size,
                                int expandable, int64_t limit, int64_t *block, Block **live,
                                int64_t *memory, int64_t room, int64_t *out) {
    Allocator a = {0};
    int64_t failed = -1;
    a.limit = limit;
    start(&a, expandable, memory, room);
    for (int64_t event = 0; event < count && !a.starved; event++) {
        if (key[event] < 0) {
            Block *dead = live[-key[event]];
            if (!dead) continue;
            live[-key[event]] = NULL;
            block[event] = -dead->size;
            dead->free = 1;
            add_merged(&a, dead);
        } else if (size[event]) {
            Block *born = expandable ? expandable_malloc(&a, size[event])
                                     : native_malloc(&a, size[event]);
            if (!born) {
                failed = event;
                break;
            }
            live[key[event]] = born;
            block[event] = born->size;
        }
    }
    out[0] = a.reserved_peak;
    out[1] = a.releases;
    out[2] = failed;
    return a.starved;
}
