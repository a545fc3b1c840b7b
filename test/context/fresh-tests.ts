// Generators of what test runners, benchmarks and a build server print, for the outputs in fresh.ts.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

const AREAS = ['basket', 'account', 'ledger', 'search', 'shipping', 'voucher'] as const

/** Jest: one assertion that is off by one cent, and one suite that cannot be loaded, both far above the summary. */
export function jest(): string {
  const roll = dice(4_201)
  const files = lines(132, (i) => {
    if (i === 49) return jestRounding()
    if (i === 88)
      return [
        'FAIL src/shipping/label-sheet.test.ts',
        '  ● Test suite failed to run',
        '',
        "    Cannot find module '@shop/barcodes/qr' from 'src/shipping/label-sheet.ts'",
        '',
        '    Require stack:',
        '      src/shipping/label-sheet.ts',
        '      src/shipping/label-sheet.test.ts',
        '',
        "    > 3 | import { qr } from '@shop/barcodes/qr'",
        '        | ^',
        '',
        '      at Resolver._throwModNotFoundError (node_modules/jest-resolve/build/resolver.js:427:11)',
        '      at Object.<anonymous> (src/shipping/label-sheet.ts:3:1)',
        '',
      ]
    const file = `src/${pick(roll, AREAS)}/${pick(roll, VERBS)}-${pick(roll, NOUNS).toLowerCase()}.test.ts`
    const pass = `PASS ${file}${roll(5) === 0 ? ` (${5 + roll(4)}.${roll(999)} s)` : ''}`
    if (roll(11) !== 0) return pass
    return [
      pass,
      '  ● Console',
      '',
      '    console.warn',
      `      useRates: no rates for ${pick(roll, ['SE', 'NO', 'PL', 'CZ'])}, falling back to the table`,
      '',
      `      at useRates (src/${pick(roll, AREAS)}/rates.ts:${20 + roll(60)}:13)`,
      '',
    ]
  })
  return `${[
    '> shop-web@4.18.0 test',
    '> jest --ci',
    '',
    ...files,
    'Test Suites: 2 failed, 1 skipped, 130 passed, 132 of 133 total',
    'Tests:       1 failed, 6 skipped, 1184 passed, 1191 total',
    'Snapshots:   3 obsolete, 212 passed, 212 total',
    'Time:        94.118 s',
    'Ran all test suites.',
  ].join('\n')}\n`
}

function jestRounding(): string[] {
  return [
    'FAIL src/voucher/split-voucher.test.ts',
    '  ● splitVoucher › gives the odd cent to the dearest line',
    '',
    '    expect(received).toEqual(expected) // deep equality',
    '',
    '    - Expected  - 1',
    '    + Received  + 1',
    '',
    '      Array [',
    '        334,',
    '        333,',
    '    -   1333,',
    '    +   1332,',
    '      ]',
    '',
    '      61 |   const shares = splitVoucher(basket, 2000)',
    '    > 62 |   expect(shares).toEqual([334, 333, 1333])',
    '         |                  ^',
    '      63 | })',
    '',
    '      at Object.toEqual (src/voucher/split-voucher.test.ts:62:18)',
    '',
  ]
}

/** Cypress over forty specs: one fails on an element that never came, and one needs minutes. */
export function cypress(): string {
  const roll = dice(4_202)
  const names = Array.from(
    { length: 40 },
    (_, i) => `${pick(roll, AREAS)}/${pick(roll, VERBS)}-${pick(roll, NOUNS).toLowerCase()}-${i}.cy.ts`,
  )
  const results: string[] = []
  const runs = names.flatMap((name, i) => {
    const count = 2 + roll(4)
    const seconds = 4 + roll(30)
    const time = i === 26 ? '07:43' : `00:${two(seconds)}`
    const broken = i === 18
    results.push(
      `│ ${broken ? '✖' : '✔'}  ${name.padEnd(44)} ${time}  ${count}  ${count - (broken ? 1 : 0)}  ${broken ? '1' : '-'} │`,
    )
    const tests = lines(count, (t) => {
      if (broken && t === 1) return '    1) keeps the basket after a refused card'
      return `    ✓ ${pick(roll, VERBS)}s the ${pick(roll, NOUNS).toLowerCase()} (${400 + roll(3_000)}ms)`
    })
    return [
      '',
      `  Running:  ${name}   (${i + 1} of 40)`,
      '',
      `  ${name.split('/')[0] ?? ''}`,
      ...tests,
      '',
      `  ${count - (broken ? 1 : 0)} passing (${seconds}s)`,
      ...(broken ? cypressFailure() : []),
    ]
  })
  return `${[
    '====================================================================================================',
    '  (Run Starting)',
    '  │ Cypress:        13.15.2                                                                        │',
    '  │ Browser:        Electron 118 (headless)                                                        │',
    '  │ Specs:          40 found                                                                       │',
    ...runs,
    '',
    '====================================================================================================',
    '  (Run Finished)',
    '   Spec                                              Tests  Passing  Failing',
    ...results,
    '  ✖  1 of 40 failed (3%)                             18:09      139      138        1',
  ].join('\n')}\n`
}

function cypressFailure(): string[] {
  return [
    '  1 failing',
    '',
    '  1) keeps the basket after a refused card:',
    '     AssertionError: Timed out retrying after 8000ms: Expected to find element: `[data-cy=try-other-card]`, but never found it.',
    '      at Context.eval (webpack://shop-web/./cypress/e2e/pay/refused-card.ts:34:9)',
    '',
    '  (Screenshots)',
    '  -  /e2e/screenshots/keeps the basket after a refused card (failed).png                  (1280x720)',
  ]
}

/** benchstat of two runs: sixty benchmarks that stayed, one that became four times slower, one that allocates now. */
export function benchstat(): string {
  const roll = dice(4_203)
  const names = Array.from(
    { length: 62 },
    (_, i) => `${pick(roll, NOUNS)}${pick(roll, ['Merge', 'Split', 'Encode', 'Lookup', 'Round'])}/n=${10 + i * 3}-16`,
  )
  type Odd = { readonly at: number; readonly before: string; readonly after: string }
  const table = (unit: string, value: () => string, odd: Odd): string[] => [
    '                       │    old.txt    │                new.txt                │',
    `                       │    ${unit.padEnd(10)} │    ${unit.padEnd(10)}  vs base               │`,
    ...names.map((name, i) => {
      if (i === odd.at) return `${name.padEnd(23)}   ${odd.before} ± 1%   ${odd.after} (p=0.000 n=10)`
      const before = value()
      if (unit === 'allocs/op') return `${name.padEnd(23)}   ${before} ± 0%   ${before} ± 0%   ~ (p=1.000 n=10) ¹`
      const after = before.replace(/\d(?=\D*$)/, String(roll(10)))
      return `${name.padEnd(23)}   ${before} ± ${roll(4)}%   ${after} ± ${roll(4)}%   ~ (p=0.${200 + roll(780)} n=10)`
    }),
    '',
  ]
  const size = (unit: string) => (): string => `${1 + roll(8)}.${two(roll(1_000), 3)}${unit}`
  return `${[
    'goos: linux',
    'goarch: amd64',
    'pkg: shop.example/pricing',
    'cpu: AMD EPYC 7763 64-Core Processor',
    ...table('sec/op', size('µ'), { at: 33, before: '6.671µ', after: '27.914µ ± 2%  +318.44%' }),
    ...table('B/op', size('Ki'), { at: 20, before: '10.394Ki', after: '1.442Mi ± 0%  +14106.25%' }),
    ...table('allocs/op', () => `${1 + roll(40)}.000`, { at: 20, before: '20.000', after: '8.194k ± 0%  +40870.00%' }),
    '¹ all samples are equal',
  ].join('\n')}\n`
}

/** The console of a Jenkins pipeline with four branches; the machine of one of them went away. */
export function jenkins(): string {
  const roll = dice(4_204)
  const branches = ['api', 'web', 'worker', 'docs'] as const
  const steps = lines(168, (i) => {
    if (i === 71)
      return [
        '[worker] java.io.IOException: No space left on device',
        '[worker] \tat java.base/java.io.FileOutputStream.writeBytes(Native Method)',
        '[worker] \tat hudson.util.FileChannelWriter.write(FileChannelWriter.java:73)',
        '[worker] Retrying after 10 seconds',
      ]
    if (i === 97)
      return [
        '[api] Cannot contact linux-large-07: hudson.remoting.ChannelClosedException: Channel "hudson.remoting.Channel@4a1f:linux-large-07": Remote call on linux-large-07 failed.',
        '[api] Could not connect to linux-large-07 to send interrupt signal to process',
      ]
    if (i === 130)
      return [
        '[web] + ./ci/upload-maps.sh',
        '[web] 403 while uploading app.3f1c.js.map: token expired at 2026-11-15T23:59:59Z',
        '[web] (ignored, maps are optional)',
      ]
    const branch = pick(roll, branches)
    const what = [
      `+ ./ci/${pick(roll, VERBS)}.sh ${pick(roll, NOUNS).toLowerCase()}`,
      `Fetching upstream changes from https://git.example/shop/${branch}.git`,
      ` > git rev-parse refs/remotes/origin/main^{commit} # timeout=10`,
      `Checking out Revision ${hex(roll, 40)} (refs/remotes/origin/main)`,
      `[INFO] ${pick(roll, NOUNS)}${pick(roll, ['Store', 'Api', 'Job'])} compiled in ${roll(9)}.${roll(10)} s`,
      `Archiving artifacts`,
      `Cache restored successfully (${20 + roll(300)} MB)`,
    ] as const
    return `${roll(3) === 0 ? `[${clock(i * 4, 6)}] ` : ''}[${branch}] ${pick(roll, what)}`
  })
  return `${[
    'Started by upstream project "shop-main" build number 4411',
    'Obtained Jenkinsfile from git https://git.example/shop/ci.git',
    '[Pipeline] Start of Pipeline',
    '[Pipeline] parallel',
    ...steps,
    '[Pipeline] // parallel',
    '[Pipeline] stage',
    '[Pipeline] { (Declarative: Post Actions)',
    'Stage "Publish" skipped due to earlier failure(s)',
    'Failed in branch api',
    '[Pipeline] End of Pipeline',
    'Finished: ABORTED',
  ].join('\n')}\n`
}
