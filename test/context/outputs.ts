// Outputs that real programs printed, as files in `outputs/`, each with the lines that a reader of a shortened form must still find:
// for the tests and the benches of the content router. How each was made stands in its README. Generated ones of any size are in
// corpus.ts, generated ones with lines that must stay in machine-outputs.ts.
import { readFileSync } from 'node:fs'
import type { ContentHint, ContentKind } from '../../src/index.ts'
import type { Sample } from './corpus.ts'

/** `stays`: parts of lines that must be found in a shortened form. They were written down before any rule was tuned. */
export type Output = Sample & { readonly stays: readonly string[] }

/** `npm test` and `npm run bench` both start in the folder of the repository. */
const FOLDER = 'test/context/outputs'

function output(file: string, kind: ContentKind, hint: ContentHint, stays: readonly string[]): Output {
  return {
    id: `real_${file.replace(/\W/g, '_')}`,
    name: file,
    kind,
    hint,
    text: readFileSync(`${FOLDER}/${file}`, 'utf8'),
    stays,
  }
}

export const OUTPUTS: readonly Output[] = [
  output('asan.txt', 'log', { command: './asan' }, [
    'heap-buffer-overflow on address',
    'in main /app/asan.c:3',
    'is located 0 bytes to the right of 40-byte region',
    '==14206==ABORTING',
  ]),
  output('cargo-build.txt', 'log', { command: 'cargo build --workspace' }, [
    '106 |     format!("{to}: {}", missing)',
    'could not compile',
  ]),
  output('cargo-messages.jsonl', 'json', { path: 'cargo-messages.jsonl' }, ['unused variable', 'unused import']),
  output('cargo-metadata.json', 'json', {}, ['billing', 'stock', 'resolve']),
  output('cargo-test.txt', 'log', { command: 'cargo test --no-fail-fast' }, [
    'panicked at crates/billing/src/lib.rs:59:9',
    '  left: 600',
    ' right: 601',
    'panicked at crates/stock/src/lib.rs:102:28',
    'panicked at crates/stock/src/lib.rs:104:38',
    '14 passed; 2 failed',
  ]),
  output('cmake.txt', 'log', { command: 'cmake .' }, [
    'CMake Error at',
    'Could NOT find Protobuf',
    'CMakeLists.txt:6 (find_package)',
    'Configuring incomplete',
  ]),
  output('docker-ps.txt', 'log', { command: 'docker ps -a' }, [
    'CONTAINER ID',
    'Restarting (1) 14 seconds ago',
    'shop-cron-83',
  ]),
  output('dpkg-log.txt', 'log', {}, ['startup archives unpack']),
  output('find.txt', 'log', { command: 'find src no-such docs' }, [
    'no-such’: No such file or directory',
    'contexts.ts',
  ]),
  output('gcc-link.txt', 'log', { command: 'make' }, [
    "undefined reference to `connect_pool'",
    "in function `main'",
    'ld returned 1 exit status',
  ]),
  output('gcc-make.txt', 'log', { command: 'make -k' }, [
    'error: ‘struct store’ has no member named ‘nope’',
    'implicit declaration of function ‘missing_fn’',
    '[<builtin>: m37.o] Error 1',
  ]),
  output('git-diff.txt', 'diff', { command: 'git diff HEAD~6' }, ['src/context/summary.ts', 'src/context/window.ts']),
  output('git-grep.txt', 'search', { command: "git grep -n 'readonly'", query: 'readonly' }, [
    'src/riders/guard/call-outcome.ts',
  ]),
  output('git-log-stat.txt', 'log', { command: 'git log --stat -12' }, [
    'b76df422fc5a',
    '3590ef39f18a',
    '26 files changed',
    'a note of what changed stays as long',
  ]),
  output('git-merge.txt', 'log', { command: 'git merge side' }, [
    'CONFLICT (modify/delete): src/module_120.txt',
    'CONFLICT (content): Merge conflict in src/module_88.txt',
    'Automatic merge failed',
  ]),
  output('git-show.txt', 'diff', { command: 'git show' }, ['package.json']),
  output('git-status.txt', 'log', { command: 'git status' }, [
    'You have unmerged paths',
    'deleted by us:   src/module_120.txt',
    'both modified:   src/module_88.txt',
  ]),
  output('java-trace.txt', 'log', {}, [
    'ERROR [pool-1-thread-3]',
    'RuntimeException: cannot load order 131',
    'Caused by: java.lang.IllegalStateException: pool exhausted',
    'App.load(App.java:4)',
  ]),
  output('javac.txt', 'log', { command: 'javac -Xlint:all *.java' }, [
    'C23.java:2: error: cannot find symbol',
    'symbol:   variable s',
    '1 error',
  ]),
  output('jstack.txt', 'log', { command: 'jstack 4711' }, [
    'Found one Java-level deadlock',
    'which is held by "transfer-b"',
    'which is held by "transfer-a"',
    'Found 1 deadlock',
  ]),
  output('kubectl-describe.txt', 'log', { command: 'kubectl describe pod' }, [
    'CrashLoopBackOff',
    'Back-off restarting failed container',
  ]),
  output('kubectl-events.txt', 'log', { command: 'kubectl get events' }, ['Back-off restarting failed container']),
  output('kubectl-pods.json', 'json', {}, ['CrashLoopBackOff']),
  output('kubectl-pods.txt', 'log', { command: 'kubectl get pods' }, ['CrashLoopBackOff', 'ImagePullBackOff']),
  output('kubectl-pods.yaml', 'log', { path: 'pods.yaml' }, ['CrashLoopBackOff', 'apiVersion: v1']),
  output('mdbook.html', 'html', {}, []),
  output('node-spec.txt', 'log', { command: 'node --test' }, [
    '✖ price 41 is rounded half up',
    '✖ price 66 is rounded half up',
    'fail 2',
  ]),
  output('node-tap.txt', 'log', { command: 'node --test --test-reporter=tap' }, [
    'not ok 42 - price 41 is rounded half up',
    "error: '10.01 == 10.02'",
    'not ok 67 - price 66',
    '# fail 2',
  ]),
  output('node-trace.txt', 'log', { command: 'node server.mjs' }, [
    'Error: request 190 was not served',
    "TypeError: Cannot read properties of undefined (reading 'price')",
    'trace.mjs:1:',
  ]),
  output('npm-install.txt', 'log', { command: 'npm install --loglevel http' }, ['added 51 packages']),
  output('npm-ls.json', 'json', {}, ['@ag-ui/client']),
  output('npm-ls.txt', 'log', { command: 'npm ls --all' }, ['UNMET OPTIONAL DEPENDENCY']),
  output('npm-registry.json', 'json', {}, ['yocto-queue', '1.2.2']),
  output('npm-run.txt', 'log', { command: 'npm run build' }, ['Killed', '> shop@1.0.0 build']),
  output('oxlint-stylish.txt', 'log', { command: 'npx oxlint -f stylish' }, [
    'function `think` has a complexity of 26',
    'method `take` has a complexity of 21',
    'private method `compact` has a complexity of 26',
    'src/kernel/transcript.ts',
  ]),
  output('postgres-server-log.txt', 'log', {}, [
    'ERROR:  deadlock detected',
    'ERROR:  invalid input syntax for type integer: "x1"',
    'waits for ShareLock on transaction',
    'database system is ready to accept connections',
  ]),
  output('psql-expanded.txt', 'log', { command: 'psql -x' }, ['stuck', 'job-173']),
  output('psql-explain-yaml.txt', 'log', { command: 'psql' }, [
    'Node Type: "Aggregate"',
    'Node Type: "Hash Join"',
    'Execution Time',
  ]),
  output('psql-table.txt', 'log', { command: 'psql' }, ['job-173', 'stuck', '(320 rows)']),
  output('psql.csv', 'log', { path: 'jobs.csv' }, ['id,name,status || id\tname\tstatus', 'job-173', 'stuck', '-1']),
  output('pydoc.html', 'html', {}, []),
  output('pytest-failures.txt', 'log', { command: 'pytest' }, [
    'AssertionError: Lists differ',
    'ValueError: placeholder too large for max width',
    "'  hello there\\n\\thow are you?' != ' hello there",
  ]),
  output('pytest-v.txt', 'log', { command: 'pytest -v' }, ['66 passed in 1.66s']),
  output('python-log.txt', 'log', { command: 'python3 svc.py' }, [
    "ValueError: invalid literal for int() with base 10: '12,50'",
    'RuntimeError: row 211 of batch 7 is unreadable',
    'ERROR ingest: batch aborted',
    'in parse',
    'direct cause of the following exception',
  ]),
  output('rg.txt', 'search', { tool: 'grep', query: 'sqlite' }, ['sqlite-removal.test.ts']),
  output('sha256sum.txt', 'log', { command: 'sha256sum -c SUMS' }, [
    'part-147.bin: FAILED',
    '1 computed checksum did NOT match',
  ]),
  output('sqlite-column.txt', 'log', { command: 'sqlite3 t.db' }, ['web-119', 'draining', 'web-201', 'reboot pending']),
  output('sqlite-json.txt', 'json', { command: 'sqlite3 t.db' }, ['web-119', 'draining', 'web-201', 'reboot pending']),
  output('sqlite-markdown.txt', 'log', { command: 'sqlite3 t.db' }, [
    'web-119',
    'draining',
    'web-201',
    'reboot pending',
  ]),
  output('strace.txt', 'log', { command: 'strace cat' }, [
    '"/home/user/none", O_RDONLY) = -1 ENOENT',
    'exited with 1',
    'execve("/usr/bin/cat"',
  ]),
  output('tar.txt', 'log', { command: 'tar cvf' }, ['tar: no-such-folder: Cannot stat', 'Exiting with failure status']),
  output('terraform-plan.txt', 'log', { command: 'terraform plan' }, [
    'terraform_data.node_45 must be replaced',
    'Plan: 1 to add, 69 to change, 1 to destroy',
  ]),
  output('tsc-pretty.txt', 'log', { command: 'npx tsc --noEmit --pretty' }, ['src/cli/state/plain-file.ts']),
  output('tsc.txt', 'log', { command: 'npx tsc --noEmit' }, ['error TS']),
  output('unittest.txt', 'log', { command: 'python3 test_many.py' }, [
    "KeyError: 'absent'",
    'AssertionError: Lists differ: [1, 2, 3] != [1, 2, 4]',
    'FAILED (failures=1, errors=1)',
    'test_case_143_rounds',
  ]),
  output('vitest.txt', 'log', { command: 'npx vitest run --reporter=verbose' }, [
    'AssertionError: expected { …(7) } to match object',
    'AssertionError: expected 22684 to be less than or equal to 18786',
    '-   "lossy": true,',
  ]),
]
