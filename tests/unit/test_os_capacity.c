/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory there is, as told by made-up machines: folders with the files that Linux shows under /proc and /sys. */
#define _GNU_SOURCE
#include "support.h"

#include "os/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];

static int make_root(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/onuma-capacity-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static void write_file(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void machine(const char *cgroup) {
    write_file("/proc/meminfo", "MemTotal:       16000 kB\nMemFree: 1 kB\nMemAvailable:    9000 kB\n");
    write_file("/proc/self/cgroup", cgroup);
}

static void expect(uint64_t total, uint64_t available) {
    uint64_t t = 0, a = 0;
    onuma__os_memory_under(root, &t, &a);
    assert_int_equal(t, total);
    assert_int_equal(a, available);
}

static void without_groups_the_machine_counts(void **state) {
    (void)state;
    machine("0::/a\n");
    expect(16000 * 1024, 9000 * 1024);
    write_file("/sys/fs/cgroup/a/memory.max", "max\n");
    write_file("/sys/fs/cgroup/a/memory.current", "12345\n");
    expect(16000 * 1024, 9000 * 1024);
}

static void version_2_limits_and_its_use_count(void **state) {
    (void)state;
    machine("0::/a/b\n");
    write_file("/sys/fs/cgroup/a/b/memory.max", "1000000\n");
    expect(1000000, 1000000);
    write_file("/sys/fs/cgroup/a/b/memory.current", "700000\n");
    expect(1000000, 300000);
    write_file("/sys/fs/cgroup/a/b/memory.stat", "anon 1\ninactive_file 100000\nactive_file 7\n");
    expect(1000000, 400000);
    write_file("/sys/fs/cgroup/a/b/memory.current", "2000000\n");
    expect(1000000, 0);
}

static void the_tightest_group_above_counts(void **state) {
    (void)state;
    machine("0::/a/b/c\n");
    write_file("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
    write_file("/sys/fs/cgroup/a/b/memory.max", "3000000\n");
    write_file("/sys/fs/cgroup/a/memory.max", "2000000\n");
    write_file("/sys/fs/cgroup/a/memory.current", "500000\n");
    expect(2000000, 1500000);
}

static void a_containers_limit_stands_at_its_root(void **state) {
    (void)state;
    machine("5:cpu:/docker/0123\n4:memory:/docker/0123\n0::/\n");
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4000000\n");
    write_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n");
    write_file("/sys/fs/cgroup/memory/memory.stat", "inactive_file 9\ntotal_inactive_file 200000\n");
    expect(4000000, 3200000);
}

static void limits_beyond_the_machine_do_not_count(void **state) {
    (void)state;
    machine("4:memory:/\n0::/\n");
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n");
    expect(16000 * 1024, 9000 * 1024);
}

static void nonsense_is_survived(void **state) {
    (void)state;
    machine("");
    expect(16000 * 1024, 9000 * 1024);
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text, "0::/", 4);
    machine(text);
    expect(16000 * 1024, 9000 * 1024);
    write_file("/proc/meminfo", "nothing of use\n");
    uint64_t total = 0, available = 0;
    onuma__os_memory_under(root, &total, &available);
    assert_true(total > 0 && available <= total); /* the system call's */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(without_groups_the_machine_counts),      TEST(version_2_limits_and_its_use_count),
        TEST(the_tightest_group_above_counts),        TEST(a_containers_limit_stands_at_its_root),
        TEST(limits_beyond_the_machine_do_not_count), TEST(nonsense_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
