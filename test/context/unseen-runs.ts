// Generators of what test runners, jobs of a CI and runs of a data pipeline print, and two in-house programs, for the outputs in unseen.ts.
import { clock, dice, hex, lines, NOUNS, pick, type Dice, two, VERBS } from './held-out-dice.ts'

const RULE = '─'.repeat(98)

function cypressSpec(roll: Dice, n: number): readonly string[] {
  const spec = n === 6 ? 'checkout.cy.ts' : `${pick(roll, NOUNS).toLowerCase()}-${pick(roll, VERBS)}-${n}.cy.ts`
  const tests = lines(5 + roll(5), (i) => {
    if (n === 6 && i === 3) return '    1) pays by card'
    if (n === 10 && i === 2)
      return ['    (Attempt 1 of 3) shows the depot on the map', '    ✓ shows the depot on the map (9411ms)']
    return `    ✓ ${pick(roll, VERBS)}s the ${pick(roll, NOUNS).toLowerCase()} ${i} (${100 + roll(1900)}ms)`
  })
  const failure =
    n === 6
      ? [
          '  1 failing',
          '',
          '  1) Checkout',
          '       pays by card:',
          "     AssertionError: Timed out retrying after 4000ms: expected '<span.total>' to have text '€ 41.90', but the text was '€ 41.09'",
          '      at Context.eval (webpack:///./cypress/e2e/checkout.cy.ts:57:31)',
          '',
        ]
      : []
  return [
    RULE,
    '                                                                                                    ',
    `  Running:  ${spec.padEnd(66)} (${n + 1} of 16)`,
    '',
    '',
    `  ${spec.replace(/[-.].*/, '')}`,
    ...tests,
    '',
    `  ${tests.length} passing (${4 + roll(20)}s)`,
    ...failure,
    '',
    '  (Results)',
    '',
    '  ┌────────────────────────────────────────────────────────────────────────────────────────────────┐',
    `  │ Tests:        ${String(tests.length).padEnd(81)}│`,
    `  │ Failing:      ${(n === 6 ? '1' : '0').padEnd(81)}│`,
    `  │ Screenshots:  ${(n === 6 ? '1' : '0').padEnd(81)}│`,
    `  │ Spec Ran:     ${spec.padEnd(81)}│`,
    '  └────────────────────────────────────────────────────────────────────────────────────────────────┘',
    '',
    '',
  ]
}

/** Cypress: one total with two digits swapped, one test that needed a second attempt, one spec that lasted minutes. */
export function cypress(): string {
  const roll = dice(711)
  const summary = lines(16, (n) => {
    const mark = n === 6 ? '✖' : '✔'
    const spec =
      n === 6 ? 'checkout.cy.ts' : n === 12 ? 'import-tariffs.cy.ts' : `${pick(roll, NOUNS).toLowerCase()}-${n}.cy.ts`
    const time = n === 12 ? '06:41' : `00:${two(8 + roll(40))}`
    return [
      `  │ ${mark}  ${spec.padEnd(44)} ${time}        ${5 + roll(5)}        ${n === 6 ? 7 : '-'}        ${n === 6 ? 1 : '-'}        -        - │`,
      `  ├${'─'.repeat(96)}┤`,
    ]
  })
  return `${[
    RULE.replaceAll('─', '='),
    '',
    '  (Run Starting)',
    '',
    '  Cypress:        13.15.2',
    '  Browser:        Electron 118 (headless)',
    '  Node Version:   v20.18.0 (/usr/local/bin/node)',
    '  Specs:          16 found (checkout.cy.ts, import-tariffs.cy.ts, ...)',
    '',
    ...lines(16, (n) => cypressSpec(roll, n)),
    RULE.replaceAll('─', '='),
    '',
    '  (Run Finished)',
    '',
    '       Spec                                              Tests  Passing  Failing  Pending  Skipped  ',
    `  ┌${'─'.repeat(96)}┐`,
    ...summary,
    '    ✖  1 of 16 failed (6%)                      12:58      112      111        1        -        -  ',
  ].join('\n')}\n`
}

/** The raw trace of a job of GitLab, with its sections: the pages of one old interface make the archive too large. */
export function gitlabJob(): string {
  const roll = dice(712)
  const section = (name: string, title: string, at: number): string =>
    `\u001B[0Ksection_start:${1_794_620_000 + at}:${name}\r\u001B[0K\u001B[0K\u001B[36;1m${title}\u001B[0;m`
  const end = (name: string, at: number): string => `\u001B[0Ksection_end:${1_794_620_000 + at}:${name}\r\u001B[0K`
  const page = (): string => `guide/${pick(roll, VERBS)}-${pick(roll, NOUNS).toLowerCase()}`
  return `${[
    '\u001B[0KRunning with gitlab-runner 17.5.3 (12030cf4)\u001B[0;m',
    '\u001B[0K  on docs-runner-4 t2_Kq9sP, system ID: s_0f1c9e\u001B[0;m',
    section('prepare_executor', 'Preparing the "docker" executor', 1),
    'Using Docker executor with image registry.example/docs/sphinx:8.1 ...',
    `Using docker image sha256:${hex(roll, 64)} for registry.example/docs/sphinx:8.1 ...`,
    end('prepare_executor', 9),
    section('get_sources', 'Getting source from Git repository', 9),
    'Fetching changes with git depth set to 20...',
    'Checking out 5f1c2b90 as detached HEAD (ref is refs/merge-requests/812/merge)...',
    end('get_sources', 14),
    section('step_script', 'Executing "step_script" stage of the job script', 14),
    '\u001B[32;1m$ pip list --format=freeze\u001B[0;m',
    ...lines(
      38,
      (i) => `${pick(roll, VERBS)}-${pick(roll, NOUNS).toLowerCase()}-${i}==${roll(9)}.${roll(30)}.${roll(9)}`,
    ),
    '\u001B[32;1m$ sphinx-build -b html -j auto docs public\u001B[0;m',
    'Running Sphinx v8.1.3',
    'loading translations [en]... done',
    ...lines(64, (i) =>
      i === 40
        ? '[apigen] legacy.soap: 41208 pages written in 318.4 s'
        : `[apigen] ${pick(roll, NOUNS).toLowerCase()}.${pick(roll, VERBS)}${i}: ${3 + roll(70)} pages written in ${roll(4)}.${roll(9)} s`,
    ),
    ...lines(
      100,
      (i) =>
        `\u001B[01mreading sources... \u001B[39;49;00m[${String(i + 1).padStart(3)}%] \u001B[35m${page()}\u001B[39;49;00m`,
    ),
    `\u001B[91m/builds/docs/handbook/docs/guide/tariffs.rst:118: WARNING: undefined label: 'night-surcharge'\u001B[39;49;00m`,
    ...lines(
      60,
      (i) =>
        `\u001B[01mwriting output... \u001B[39;49;00m[${String(i + 1).padStart(3)}%] \u001B[32m${page()}\u001B[39;49;00m`,
    ),
    'build succeeded, 1 warning.',
    end('step_script', 801),
    section('upload_artifacts_on_success', 'Uploading artifacts for successful job', 801),
    'Uploading artifacts...',
    'public/: found 43977 matching artifact files and directories',
    'WARNING: Uploading artifacts as "archive" to coordinator... 413 Request Entity Too Large  id=918244 responseStatus=413 token=glcbt-64',
    'FATAL: too large',
    end('upload_artifacts_on_success', 861),
    section('cleanup_file_variables', 'Cleaning up project directory and file based variables', 861),
    end('cleanup_file_variables', 862),
    '\u001B[31;1mERROR: Job failed: exit code 1\u001B[0;m',
  ].join('\n')}\n`
}

/** dbt: one model fails by a number that is too large, one gets no rows, one lasts most of an hour. */
export function dbtRun(): string {
  const roll = dice(713)
  const models = lines(78, (i) => {
    const schema = i < 40 ? 'staging' : 'marts'
    const model =
      i === 22
        ? 'stg_returns'
        : i === 35
          ? 'stg_scans'
          : i === 51
            ? 'fct_margin'
            : `${i < 40 ? 'stg' : 'fct'}_${pick(roll, NOUNS).toLowerCase()}_${i}`
    const at = `${clock(i * 9, 6)}  ${i + 1} of 78`
    const what = `sql ${i === 51 ? 'incremental' : 'table'} model ${schema}.${model} `
    const start = `${at} START ${what.padEnd(62, '.')} [RUN]`
    const later = `${clock(i * 9 + 5, 6)}  ${i + 1} of 78`
    if (i === 51) return [start, `${later} ERROR creating ${what.padEnd(53, '.')} [ERROR in 12.31s]`]
    if (i > 51 && i % 11 === 0) return `${later} SKIP relation ${schema}.${model} ${'.'.repeat(30)} [SKIP]`
    if (i === 35) return start
    const result = i === 22 ? 'SELECT 0 in 1.12s' : `SELECT ${1_000 + roll(90_000)} in ${1 + roll(9)}.${two(roll(99))}s`
    return [start, `${later} OK created ${what.padEnd(57, '.')} [${result}]`]
  })
  return `${[
    '06:00:00  Running with dbt=1.8.7',
    '06:00:01  Registered adapter: postgres=1.8.2',
    '06:00:03  Found 78 models, 4 snapshots, 402 data tests, 38 sources, 812 macros',
    "06:00:03  Concurrency: 8 threads (target='prod')",
    '06:00:03  ',
    ...models,
    '06:53:06  36 of 78 OK created sql table model staging.stg_scans ....................... [SELECT 88124 in 2871.40s]',
    '06:53:09  ',
    '06:53:09  Finished running 77 table models, 1 incremental model in 0 hours 53 minutes and 6.11 seconds (3186.11s).',
    '06:53:10  ',
    '06:53:10  Completed with 1 error and 0 warnings:',
    '06:53:10  ',
    '06:53:10    Database Error in model fct_margin (models/marts/fct_margin.sql)',
    '  numeric field overflow',
    '  DETAIL:  A field with precision 10, scale 4 must round to an absolute value less than 10^6.',
    '  compiled code at target/run/shop/models/marts/fct_margin.sql',
    '06:53:10  ',
    '06:53:10  Done. PASS=74 WARN=0 ERROR=1 SKIP=3 TOTAL=78',
  ].join('\n')}\n`
}

/** An in-house program for the locks of a canal: one line for each passage, and a block for each change of a gate. */
export function lockgate(): string {
  const roll = dice(714)
  const ship = (): string => pick(roll, ['ANNA-LENA', 'MARIJKE', 'DUISBURG 4', 'ZWAAN', 'PAULA', 'TEMPO II'] as const)
  const passages = lines(150, (i) => {
    const lock = `L${1 + (i % 7)}`
    const head = `${clock(i * 311, 4)} ${lock} ${i % 2 === 0 ? 'UP  ' : 'DOWN'} ${ship().padEnd(11)}`
    const usual = `lvl ${4 + roll(2)}.${two(roll(99))}>${6 + roll(2)}.${two(roll(99))} fill ${8 + roll(5)}m${two(roll(60))} gate A:shut B:shut sluice 2/2`
    if (i === 71) return `${head} ${usual.replace('B:shut', 'B:ajar')}`
    if (i === 98) return `${head} lvl 4.81>7.02 fill 47m12 gate A:shut B:shut sluice 1/2`
    if (i % 37 === 20)
      return [`${head} ${usual}`, `  @maint ${lock} grease pump ok, ${200 + roll(90)} bar, hours ${12_000 + roll(900)}`]
    if (i === 118)
      return [
        `${head} ${usual}`,
        '  @drive L6 motor B2 current 31.4 A (limit 22.0) held 9 s, torque trip, retried by keeper VDM',
      ]
    if (i === 130) return [`${head} ${usual}`, '  !! L5 sluice 1 refused to close, shut by hand 14:08 (LTS)']
    return `${head} ${usual}`
  })
  return `${[
    'LOCKGATE 3.8  week 46  canal Zuid  keeper roster VDM/HKR/LTS',
    'time     lock dir  ship        passage',
    ...passages,
    '--',
    'passages 150   ships 150   water spent 41.2 ML (week 45: 33.9 ML)',
    'gates not confirmed shut: 1',
    'next inspection L6: overdue 3 d',
  ].join('\n')}\n`
}

/** An in-house program of a printing house: blocks of key and value for each plate, with a verdict of its own. */
export function pressroom(): string {
  const roll = dice(715)
  const blocks = lines(88, (i) => {
    const job = 48_200 + i
    const odd = i === 39
    return [
      `#JOB ${job} ${pick(roll, ['leaflet', 'weekly', 'label', 'catalogue'])} ${pick(roll, ['Nord', 'Sund', 'Havn'])}`,
      `  plates C${roll(9)} M${roll(9)} Y${roll(9)} K${roll(9)}  register ${odd ? '+0.41' : `+0.0${1 + roll(8)}`} mm  dE ${i === 60 ? '6.8' : `1.${roll(9)}`}`,
      `  sheets ${4_000 + roll(5_000)}/${9_500 + roll(400)}  speed ${11 + roll(3)}.${roll(9)}k/h  stock ${i === 25 ? '90g recycled (asked: 135g gloss)' : '135g gloss'}`,
      ...(i === 70 ? ['  ! web break 03:41, splicer fault E-217, 12 min'] : []),
      `  => ${odd ? 'HOLD by Iversen' : 'RUN'}`,
    ]
  })
  return `${['PRESSROOM tail, shift night 2026-11-13/14, press Heidi-2', '', ...blocks, '', 'shift closed 05:58, 88 jobs, 87 run, 1 held, waste 3.1 %'].join('\n')}\n`
}
