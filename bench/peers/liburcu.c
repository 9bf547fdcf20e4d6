/*
 * liburcu's hash table, rculfhash, in the QSBR flavour: what our map is
 * measured beside. Needs liburcu 0.11 or later.
 *
 *   cc -O3 -march=native -o liburcu liburcu.c -lurcu-qsbr -lurcu-cds -pthread
 *   ./liburcu read|store|replace|churn
 *
 * One reader, the main thread, and but for "read" one updater, a thread that
 * sleeps unless it is measured:
 *
 *   read     nobody updates
 *   store    the updater stores the value of an entry in place
 *   replace  the updater puts a new entry in place of an old one, which
 *            call_rcu frees
 *   churn    the updater inserts a key unless it is there, or deletes it if it
 *            is; call_rcu frees what was deleted
 *
 * What it works on comes first on standard input, words of 32 bits in the
 * machine's own order:
 *
 *   numbers of keys, of keys to begin with, of lookups drawn, of updates
 *   drawn, and a seed other than 0
 *   keys[]      all of them
 *   values[]    their values at the beginning
 *   lookups[]   keys in the order in which they are looked up, again and again
 *   updates[]   keys in the order in which they are updated, again and again
 *
 * The numbers of lookups and updates drawn are powers of two. Update number i
 * gives its key the value i. Whether an update of "churn" inserts or deletes
 * is drawn when it is made, or every round would do the same again, and leave
 * most keys as they are: the next word of Marsaglia's xorshift32 has its
 * highest bit set or not.
 *
 * When the table is filled it answers "ready". After that each line is a
 * command, answered by a line of numbers:
 *
 *   look N      looks up the next N
 *               -> ns, lookups, hits, sum of the values found, modulo 2^32
 *   update N    makes the next N updates, in the main thread
 *               -> ns, updates
 *   run MS      reader and updater, for that long
 *               -> as look; then as update; then how many freed entries waited
 *                  for call_rcu at most, looked at every 1,024 updates
 *   count       -> entries in the table
 *
 * Nothing is left to be reclaimed when it answers, and it does nothing until
 * the next command. It ends with its input.
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <urcu/urcu-qsbr.h>
/* The table comes after the flavour. */
#include <urcu/rculfhash.h>

/* Operations between two quiescent states, and between two looks at the clock. */
#define BATCH 1024

enum mode { READ, STORE, REPLACE, CHURN };

static const char *const MODES[] = { "read", "store", "replace", "churn" };

struct entry {
	struct cds_lfht_node node;
	uint32_t key;
	uint32_t value;
};

/* Only where entries are reclaimed: the others stay as small as they can be. */
struct reclaimed_entry {
	struct entry entry;
	struct rcu_head head;
};

/* What the updater is to do, and does. */
enum phase { IDLE, STARTING, RUNNING, STOPPING };

static enum mode mode;
static struct cds_lfht *table;
/* The thread that frees: one of our own, as the default one cannot be ended. */
static struct call_rcu_data *reclaimer;

static uint32_t key_count, lookup_count, update_count;
static uint32_t *keys, *values, *lookups, *updates;

/* The reader's, which is the main thread. */
static uint32_t next_lookup;

/* Whoever updates has these to himself: the main thread while the updater is idle. */
static uint32_t next_update;
static uint32_t random_state;
static uint64_t entries;
static uint64_t retired;

/* Entries freed; written by the reclaimer alone. */
static atomic_uint_fast64_t freed;

static pthread_t updater;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* Under the mutex. */
static enum phase phase = IDLE;
static struct { uint64_t ns, updates, pending; } updated;
/* Tells a running updater to go on. */
static atomic_bool go_on;

static void die(const char *format, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

static void die(const char *format, ...)
{
	va_list arguments;

	fputs("liburcu: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

/* Checks what a function of pthread returned. */
static void check(int error, const char *what)
{
	if (error != 0)
		die("%s: %s", what, strerror(error));
}

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (memory == NULL)
		die("cannot allocate %zu bytes", size);
	return memory;
}

static uint64_t now(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_MONOTONIC, &time) != 0)
		die("cannot read the clock");
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The same function as in our map, but for the seed: the finalizer of MurmurHash3. */
static inline unsigned long hash(uint32_t key)
{
	key = (key ^ key >> 16) * 0x85ebca6bu;
	key = (key ^ key >> 13) * 0xc2b2ae35u;
	return key ^ key >> 16;
}

static inline struct entry *entry_of(struct cds_lfht_node *node)
{
	return caa_container_of(node, struct entry, node);
}

static int match(struct cds_lfht_node *node, const void *key)
{
	return entry_of(node)->key == *(const uint32_t *)key;
}

static inline struct entry *find(uint32_t key)
{
	struct cds_lfht_iter iterator;
	struct cds_lfht_node *node;

	cds_lfht_lookup(table, hash(key), match, &key, &iterator);
	node = cds_lfht_iter_get_node(&iterator);
	return node == NULL ? NULL : entry_of(node);
}

static bool reclaims(void)
{
	return mode == REPLACE || mode == CHURN;
}

static struct entry *make_entry(uint32_t key, uint32_t value)
{
	struct entry *entry = allocate(reclaims() ?
		sizeof(struct reclaimed_entry) : sizeof(struct entry));

	cds_lfht_node_init(&entry->node);
	entry->key = key;
	entry->value = value;
	return entry;
}

/* Runs in the reclaimer, after a grace period. */
static void free_entry(struct rcu_head *head)
{
	uint_fast64_t before =
		atomic_load_explicit(&freed, memory_order_relaxed);

	free(caa_container_of(head, struct reclaimed_entry, head));
	atomic_store_explicit(&freed, before + 1, memory_order_relaxed);
}

static void retire(struct cds_lfht_node *node)
{
	struct reclaimed_entry *old =
		caa_container_of(node, struct reclaimed_entry, entry.node);

	retired++;
	urcu_qsbr_call_rcu(&old->head, free_entry);
}

static void insert(uint32_t key, uint32_t value)
{
	struct entry *entry = make_entry(key, value);
	struct cds_lfht_node *there;

	there = cds_lfht_add_unique(table, hash(key), match, &key,
		&entry->node);
	if (there == &entry->node)
		entries++;
	else
		/* Nobody has seen it. */
		free(entry);
}

static void replace(uint32_t key, uint32_t value)
{
	struct entry *entry = make_entry(key, value);
	struct cds_lfht_node *old;

	old = cds_lfht_add_replace(table, hash(key), match, &key,
		&entry->node);
	if (old == NULL)
		entries++;
	else
		retire(old);
}

static void delete(uint32_t key)
{
	struct entry *entry = find(key);

	if (entry != NULL && cds_lfht_del(table, &entry->node) == 0) {
		entries--;
		retire(&entry->node);
	}
}

static bool draw_insert(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state >> 31 != 0;
}

static void store(uint32_t key, uint32_t value)
{
	struct entry *entry = find(key);

	if (entry != NULL)
		CMM_STORE_SHARED(entry->value, value);
}

struct found { uint64_t lookups, hits; uint32_t sum; };

/* Looks up the next `count` and passes a quiescent state. */
static void look_up(uint64_t count, struct found *found)
{
	/* Not loaded again behind every call of the library. */
	const uint32_t *drawn = lookups;
	uint32_t mask = lookup_count - 1;
	uint32_t at = next_lookup;
	uint64_t hits = 0;
	uint32_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct entry *entry;

		urcu_qsbr_read_lock();
		entry = find(drawn[at]);
		if (entry != NULL) {
			hits++;
			sum += CMM_LOAD_SHARED(entry->value);
		}
		urcu_qsbr_read_unlock();
		at = (at + 1) & mask;
	}
	urcu_qsbr_quiescent_state();
	next_lookup = at;
	found->lookups += count;
	found->hits += hits;
	found->sum += sum;
}

/* Makes the next `count` updates and passes a quiescent state. */
static void update(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint32_t at = next_update;
		uint32_t key = updates[at];

		urcu_qsbr_read_lock();
		switch (mode) {
		case READ:
			break;
		case STORE:
			store(key, at);
			break;
		case REPLACE:
			replace(key, at);
			break;
		case CHURN:
			if (draw_insert())
				insert(key, at);
			else
				delete(key);
			break;
		}
		urcu_qsbr_read_unlock();
		next_update = (at + 1) & (update_count - 1);
	}
	urcu_qsbr_quiescent_state();
}

/* The updater */

/* Waits until the phase is another one. Offline, or it would hold grace periods up. */
static enum phase wait_while(enum phase current)
{
	enum phase next;

	urcu_qsbr_thread_offline();
	check(pthread_mutex_lock(&mutex), "cannot lock");
	while (phase == current)
		check(pthread_cond_wait(&changed, &mutex), "cannot wait");
	next = phase;
	check(pthread_mutex_unlock(&mutex), "cannot unlock");
	urcu_qsbr_thread_online();
	return next;
}

static void set_phase(enum phase next)
{
	check(pthread_mutex_lock(&mutex), "cannot lock");
	phase = next;
	check(pthread_cond_broadcast(&changed), "cannot wake");
	check(pthread_mutex_unlock(&mutex), "cannot unlock");
}

/* Updates until told to stop. */
static void keep_updating(void)
{
	uint64_t start = now(), made = 0, most = 0;

	do {
		uint64_t pending;

		update(BATCH);
		made += BATCH;
		pending = retired -
			atomic_load_explicit(&freed, memory_order_relaxed);
		if (pending > most)
			most = pending;
	} while (atomic_load_explicit(&go_on, memory_order_relaxed));
	updated.ns = now() - start;
	updated.updates = made;
	updated.pending = most;
}

static void *updater_main(void *unused)
{
	(void)unused;
	urcu_qsbr_register_thread();
	urcu_qsbr_set_thread_call_rcu_data(reclaimer);
	while (wait_while(IDLE) != STOPPING) {
		set_phase(RUNNING);
		keep_updating();
		set_phase(IDLE);
	}
	urcu_qsbr_set_thread_call_rcu_data(NULL);
	urcu_qsbr_unregister_thread();
	return NULL;
}

/* The commands */

/* Waits until everything retired is free again, as long as it may take. */
static void reclaim_all(void)
{
	urcu_qsbr_barrier();
	if (retired != atomic_load(&freed))
		die("%" PRIu64 " entries were retired and %" PRIu64 " freed",
			retired, (uint64_t)atomic_load(&freed));
}

static void answer_look(uint64_t ns, const struct found *found)
{
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32,
		ns, found->lookups, found->hits, found->sum);
}

static void look_command(uint64_t count)
{
	struct found found = { 0 };
	uint64_t start = now();

	while (found.lookups < count) {
		uint64_t left = count - found.lookups;

		look_up(left < BATCH ? left : BATCH, &found);
	}
	answer_look(now() - start, &found);
	putchar('\n');
}

static void update_command(uint64_t count)
{
	uint64_t start = now(), ns;

	for (uint64_t done = 0; done < count;) {
		uint64_t left = count - done;
		uint64_t batch = left < BATCH ? left : BATCH;

		update(batch);
		done += batch;
	}
	ns = now() - start;
	reclaim_all();
	printf("%" PRIu64 " %" PRIu64 "\n", ns, count);
}

static void run_command(uint64_t ms)
{
	struct found found = { 0 };
	uint64_t start, end, time;

	updated.ns = updated.updates = updated.pending = 0;
	if (mode != READ) {
		atomic_store(&go_on, true);
		set_phase(STARTING);
		wait_while(STARTING);
	}
	start = now();
	end = start + ms * 1000000u;
	do {
		look_up(BATCH, &found);
		time = now();
	} while (time < end);
	if (mode != READ) {
		atomic_store(&go_on, false);
		wait_while(RUNNING);
		reclaim_all();
	}
	answer_look(time - start, &found);
	printf(" %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		updated.ns, updated.updates, updated.pending);
}

static void count_command(void)
{
	long before, after;
	unsigned long count;

	urcu_qsbr_read_lock();
	cds_lfht_count_nodes(table, &before, &count, &after);
	urcu_qsbr_read_unlock();
	if (count != entries)
		die("the table has %lu entries, and should have %" PRIu64,
			count, entries);
	printf("%lu\n", count);
}

static void obey(const char *line)
{
	uint64_t number;

	if (sscanf(line, "look %" SCNu64, &number) == 1)
		look_command(number);
	else if (sscanf(line, "update %" SCNu64, &number) == 1)
		update_command(number);
	else if (sscanf(line, "run %" SCNu64, &number) == 1)
		run_command(number);
	else if (strcmp(line, "count\n") == 0)
		count_command();
	else
		die("unknown command: %s", line);
}

static void send_answer(void)
{
	if (fflush(stdout) != 0)
		die("cannot answer");
}

/* From beginning to end */

static uint32_t *read_words(size_t count)
{
	uint32_t *words = allocate(count * sizeof(*words));

	if (fread(words, sizeof(*words), count, stdin) != count)
		die("the input ends within the data");
	return words;
}

static bool is_power_of_two(uint32_t number)
{
	return number != 0 && (number & (number - 1)) == 0;
}

/* Reads the data and fills a table with as many buckets as it has keys, or a few more. */
static void fill(void)
{
	uint32_t *header = read_words(5);
	uint32_t first = header[1];
	unsigned long buckets = 1;

	key_count = header[0];
	lookup_count = header[2];
	update_count = header[3];
	random_state = header[4];
	free(header);
	if (key_count == 0 || first > key_count || random_state == 0 ||
			!is_power_of_two(lookup_count) ||
			!is_power_of_two(update_count))
		die("bad numbers before the data");
	keys = read_words(key_count);
	values = read_words(key_count);
	lookups = read_words(lookup_count);
	updates = read_words(update_count);
	while (buckets < key_count)
		buckets *= 2;
	table = cds_lfht_new_flavor(buckets, buckets, buckets, 0,
		&urcu_qsbr_flavor, NULL);
	if (table == NULL)
		die("cannot make a table");
	urcu_qsbr_read_lock();
	for (uint32_t i = 0; i < first; i++)
		insert(keys[i], values[i]);
	urcu_qsbr_read_unlock();
	if (entries != first)
		die("a key is there twice");
}

static void empty(void)
{
	struct entry **removed = allocate((entries + 1) * sizeof(*removed));
	struct cds_lfht_iter iterator;
	struct entry *entry;
	uint64_t count = 0;

	urcu_qsbr_read_lock();
	cds_lfht_for_each_entry(table, &iterator, entry, node) {
		if (count == entries || cds_lfht_del(table, &entry->node) != 0)
			die("cannot empty the table");
		removed[count++] = entry;
	}
	urcu_qsbr_read_unlock();
	urcu_qsbr_synchronize_rcu();
	for (uint64_t i = 0; i < count; i++)
		free(removed[i]);
	free(removed);
	if (cds_lfht_destroy(table, NULL) != 0)
		die("cannot destroy the table");
	free(keys);
	free(values);
	free(lookups);
	free(updates);
}

static void set_mode(const char *name)
{
	for (size_t i = 0; i < CAA_ARRAY_SIZE(MODES); i++) {
		if (strcmp(name, MODES[i]) == 0) {
			mode = (enum mode)i;
			return;
		}
	}
	die("unknown mode: %s", name);
}

int main(int count, char **arguments)
{
	char line[64];

	if (count != 2)
		die("usage: liburcu read|store|replace|churn <data");
	set_mode(arguments[1]);
	urcu_qsbr_register_thread();
	reclaimer = urcu_qsbr_create_call_rcu_data(0, -1);
	if (reclaimer == NULL)
		die("cannot start the reclaimer");
	urcu_qsbr_set_thread_call_rcu_data(reclaimer);
	fill();
	check(pthread_create(&updater, NULL, updater_main, NULL),
		"cannot start the updater");
	puts("ready");
	send_answer();

	/* Offline while it waits for a command. */
	urcu_qsbr_thread_offline();
	while (fgets(line, sizeof(line), stdin) != NULL) {
		urcu_qsbr_thread_online();
		obey(line);
		send_answer();
		urcu_qsbr_thread_offline();
	}
	set_phase(STOPPING);
	check(pthread_join(updater, NULL), "cannot end the updater");
	urcu_qsbr_thread_online();
	reclaim_all();
	empty();
	urcu_qsbr_set_thread_call_rcu_data(NULL);
	urcu_qsbr_call_rcu_data_free(reclaimer);
	urcu_qsbr_unregister_thread();
	return EXIT_SUCCESS;
}
