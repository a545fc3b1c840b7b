// Outputs as programs print them, made here so that they can be any size: for the tests and the bench of the content router.
import type { ContentHint, ContentKind } from '../../src/index.ts'

export type Sample = {
  readonly id: string
  readonly name: string
  readonly kind: ContentKind
  readonly hint: ContentHint
  readonly text: string
}

function times<T>(count: number, make: (i: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, i) => make(i))
}

/** 400 orders; one has failed, and one took very long. */
export function orders(count = 400): string {
  const rows = times(count, (i) => ({
    id: 1_000 + i,
    customer: `customer-${(i * 7) % 83}`,
    status: i === 217 ? 'failed' : 'shipped',
    error: i === 217 ? 'card declined: insufficient funds' : null,
    total: Number((20 + ((i * 37) % 100) / 10).toFixed(2)),
    duration_ms: i === 301 ? 98_765 : 40 + ((i * 13) % 20),
    city: ['Oslo', 'Bergen', 'Molde', 'Tromsø'][i % 4] ?? '',
  }))
  return JSON.stringify(rows, null, 2)
}

/** What a service of issues answers: an object with a list in it. */
function issuesPage(): string {
  const items = times(60, (i) => ({
    number: 900 - i,
    title: `Crash when the list is ${['empty', 'long', 'sorted', 'filtered'][i % 4]} (${i})`,
    state: i % 3 === 0 ? 'closed' : 'open',
    user: { login: `user${i % 9}`, id: 5_000 + (i % 9) },
    labels: [{ name: 'bug' }, { name: i % 2 === 0 ? 'ui' : 'core' }],
    comments: i % 11,
    created_at: `2026-0${(i % 9) + 1}-1${i % 10}T08:00:00Z`,
    body: `Steps to reproduce, number ${i}. `.repeat(8),
  }))
  return JSON.stringify({ total_count: 412, incomplete_results: false, items }, null, 2)
}

export function logLines(count: number): string {
  const lines = times(count, (i) => {
    const time = `2026-11-16T10:${String(Math.floor(i / 60) % 60).padStart(2, '0')}:${String(i % 60).padStart(2, '0')}.123Z`
    if (i === 1_234) return `${time} ERROR worker-3 first: cannot reach the queue at 10.0.0.7:5672`
    if (i === count - 77) return `${time} ERROR worker-5 last: the disk is full`
    if (i % 997 === 0) return `${time} WARN  worker-${i % 8} slow query took ${i % 4_000} ms`
    return `${time} INFO  worker-${i % 8} job ${i} done in ${i % 977} ms`
  })
  return lines.join('\n')
}

/** A test run that fails, of about 200 KB. */
export function npmTest(files = 700): string {
  const passed = times(
    files,
    (i) =>
      ` ✓ test/unit/module-${i}.test.ts (${3 + (i % 9)} tests) ${10 + (i % 90)}ms\n   ✓ handles case ${i} of the parser when the input is empty and the options are the defaults\n   ✓ handles case ${i} again with every option set, and says which one was wrong`,
  )
  const failure = [
    ' FAIL  test/unit/price.test.ts > price > rounds half up',
    'AssertionError: expected 10.01 to be 10.02 // Object.is equality',
    ' ❯ test/unit/price.test.ts:41:27',
    '     39|   it("rounds half up", () => {',
    '     40|     const price = priceOf({ net: 8.42, vat: 0.19 })',
    '     41|     expect(price).toBe(10.02)',
    '       |                   ^',
    '     42|   })',
  ]
  const head = ['', '> shop@1.4.0 test', '> vitest run', '', ' RUN  v3.2.4 /app', '']
  const end = [
    '',
    ' Test Files  1 failed | 700 passed (701)',
    '      Tests  1 failed | 4200 passed (4201)',
    '   Duration  12.31s',
    '',
    'npm ERR! Test failed.  See above for more details.',
  ]
  return [...head, ...passed, '', '⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯', '', ...failure, ...end].join('\n')
}

function npmInstall(): string {
  const deprecated = times(
    60,
    (i) => `npm warn deprecated left-pad-${i}@1.${i}.0: use String.prototype.padStart() instead of this package`,
  )
  return [
    ...deprecated,
    '',
    'added 1284 packages, and audited 1285 packages in 41s',
    '',
    '214 packages are looking for funding',
    '  run `npm fund` for details',
    '',
    '3 vulnerabilities (1 moderate, 2 high)',
    '',
    'To address all issues, run:',
    '  npm audit fix',
  ].join('\n')
}

function cargoBuild(): string {
  const compiled = times(220, (i) => `   Compiling crate-${i} v0.${i % 40}.${i % 7}`)
  const error = [
    'error[E0382]: borrow of moved value: `config`',
    '  --> src/server.rs:88:21',
    '   |',
    '71 |     let config = Config::load()?;',
    '   |         ------ move occurs because `config` has type `Config`',
    '88 |     println!("{}", config.port);',
    '   |                    ^^^^^^^^^^^ value borrowed here after move',
    '',
    'For more information about this error, try `rustc --explain E0382`.',
    'error: could not compile `server` (bin "server") due to 1 previous error',
  ]
  return [...compiled, ...error].join('\n')
}

function pytestRun(): string {
  const head = [
    '============================= test session starts ==============================',
    'platform linux -- Python 3.12.4, pytest-8.3.2, pluggy-1.5.0',
    'rootdir: /app',
    'plugins: asyncio-0.24.0, cov-5.0.0',
    'collected 640 items',
    '',
  ]
  const passed = times(
    160,
    (i) =>
      `tests/test_module_${i}.py ....${'.'.repeat(i % 20)}${' '.repeat(40 - (i % 20))}[ ${String(Math.floor((i * 100) / 160)).padStart(2)}%]`,
  )
  const failed = [
    '=================================== FAILURES ===================================',
    '____________________________ test_rounds_half_up _______________________________',
    '',
    '    def test_rounds_half_up():',
    '>       assert price(8.42) == 10.02',
    'E       assert 10.01 == 10.02',
    'E        +  where 10.01 = price(8.42)',
    '',
    'tests/test_price.py:41: AssertionError',
    '=========================== short test summary info ============================',
    'FAILED tests/test_price.py::test_rounds_half_up - assert 10.01 == 10.02',
    '======================== 1 failed, 639 passed in 14.22s ========================',
  ]
  return [...head, ...passed, ...failed].join('\n')
}

function tscRun(): string {
  const errors = times(120, (i) =>
    [
      `src/pages/page-${i}.tsx:${10 + i}:${3 + (i % 40)} - error TS2322: Type 'string' is not assignable to type 'number'.`,
      '',
      `${10 + i}   const total: number = order.total`,
      '            ~~~~~',
      '',
    ].join('\n'),
  )
  return [...errors, 'Found 120 errors in 120 files.'].join('\n')
}

function kubectlPods(): string {
  const rows = times(260, (i) => {
    const name = `web-${i % 12}-5d9f7c8b6-${(1_000 + i * 37).toString(36)}`.padEnd(34)
    return i === 131
      ? `${name} 0/1     CrashLoopBackOff   214        3d4h`
      : `${name} 1/1     Running            0          ${1 + (i % 9)}d`
  })
  return ['NAME                               READY   STATUS             RESTARTS   AGE', ...rows].join('\n')
}

export function gitDiff(): string {
  const lock = times(300, (i) => `${i % 2 === 0 ? '-' : '+'}      "resolved": "https://example.com/pkg-${i}.tgz",`)
  const context = times(30, (i) => ` const unchanged${i} = load(${i})`)
  return [
    'diff --git a/package-lock.json b/package-lock.json',
    'index 1111111..2222222 100644',
    '--- a/package-lock.json',
    '+++ b/package-lock.json',
    '@@ -1,150 +1,150 @@',
    ...lock,
    'diff --git a/src/price.ts b/src/price.ts',
    'index 3333333..4444444 100644',
    '--- a/src/price.ts',
    '+++ b/src/price.ts',
    '@@ -1,32 +1,32 @@',
    ...context.slice(0, 15),
    '--- a comment that was removed',
    '-const rate = 0.16',
    '+// a comment',
    '+const rate = 0.19',
    ...context.slice(15),
  ].join('\n')
}

function grepRun(): string {
  return times(420, (i) => {
    const file = `src/room-${i % 14}/file-${i % 14}.ts`
    return i % 30 === 7
      ? `${file}:${i + 1}:export function resolveModel(name: string): Model {`
      : `${file}:${i + 1}:  const model = resolveModel(options.model ?? fallbackFor(${i}))`
  }).join('\n')
}

export function htmlPage(): string {
  const items = times(
    120,
    (i) =>
      `<div class="card card--wide" data-id="${i}"><h3 class="title"><a href="/posts/${i}">Post number ${i}</a></h3><p class="lead">What happened on day ${i}, told in one sentence.</p><span class="meta" aria-hidden="true"></span></div>`,
  )
  const style = times(200, (i) => `.c${i}{margin:${i}px;padding:${i % 9}px}`).join('')
  return `<!DOCTYPE html><html lang="en"><head><title>All posts</title><style>${style}</style><script>window.__STATE__=${JSON.stringify(times(200, (i) => i))}</script></head><body><nav><a href="/">Home</a></nav><main>${items.join('\n')}</main></body></html>`
}

export function typescriptFile(): string {
  return times(30, (i) =>
    [
      `/** Says what number ${i} is. */`,
      `export function describe${i}(value: number, options: { readonly long?: boolean } = {}): string {`,
      ...times(14, (j) => `  if (value === ${j}) return options.long ? \`{ ${j} }\` : '${j}}' // a brace in a text`),
      "  return 'many'",
      '}',
      '',
    ].join('\n'),
  ).join('\n')
}

export function pythonFile(): string {
  return times(30, (i) =>
    [
      `class Shape${i}:`,
      `    """Shape number ${i}."""`,
      '',
      '    def area(',
      '        self,',
      '        scale: float = 1.0,',
      '    ) -> float:',
      '        """The area, scaled."""',
      ...times(12, (j) => `        step_${j} = scale * ${j}`),
      '        return step_1',
      '',
    ].join('\n'),
  ).join('\n')
}

export function rustFile(): string {
  return times(30, (i) =>
    [
      `impl<'a> Reader${i}<'a> {`,
      `    pub fn read(&'a self, limit: usize) -> Result<Vec<u8>, Error> {`,
      ...times(12, (j) => `        let part_${j} = self.next("{")?;`),
      '        Ok(vec![])',
      '    }',
      '}',
      '',
    ].join('\n'),
  ).join('\n')
}

export const CORPUS: readonly Sample[] = [
  { id: 'orders', name: 'JSON, 400 orders', kind: 'json', hint: {}, text: orders() },
  { id: 'issues', name: 'JSON, a page of issues', kind: 'json', hint: {}, text: issuesPage() },
  { id: 'npm_test', name: 'npm test, one failure', kind: 'log', hint: { command: 'npm test' }, text: npmTest() },
  { id: 'npm_install', name: 'npm install', kind: 'log', hint: { command: 'npm install' }, text: npmInstall() },
  { id: 'cargo', name: 'cargo build, one error', kind: 'log', hint: { command: 'cargo build' }, text: cargoBuild() },
  { id: 'pytest', name: 'pytest, one failure', kind: 'log', hint: { command: 'pytest -q' }, text: pytestRun() },
  { id: 'tsc', name: 'tsc, 120 errors', kind: 'log', hint: { command: 'npx tsc --noEmit' }, text: tscRun() },
  { id: 'kubectl', name: 'kubectl get pods', kind: 'log', hint: { command: 'kubectl get pods' }, text: kubectlPods() },
  { id: 'log', name: 'a service log, 20,000 lines', kind: 'log', hint: {}, text: logLines(20_000) },
  { id: 'diff', name: 'git diff with a lockfile', kind: 'diff', hint: { command: 'git diff' }, text: gitDiff() },
  {
    id: 'grep',
    name: 'grep, 420 matches',
    kind: 'search',
    hint: { tool: 'grep', query: 'resolveModel' },
    text: grepRun(),
  },
  { id: 'html', name: 'an HTML page', kind: 'html', hint: {}, text: htmlPage() },
  { id: 'typescript', name: 'a TypeScript file', kind: 'code', hint: { path: 'a.ts' }, text: typescriptFile() },
  { id: 'python', name: 'a Python file', kind: 'code', hint: {}, text: pythonFile() },
  { id: 'rust', name: 'a Rust file', kind: 'code', hint: { path: 'a.rs' }, text: rustFile() },
]
