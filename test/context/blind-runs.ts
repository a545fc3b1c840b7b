// Generators of what further test runners and whole pipelines print, for the outputs in blind.ts.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

/** The chatter of TeX: nested files, boxes that are too full, one undefined command and one undefined reference. */
export function latex(): string {
  const roll = dice(311)
  const body = lines(150, (i) => {
    if (i === 83)
      return [
        '! Undefined control sequence.',
        'l.412 The tariff of \\zonename',
        '                             {north} is valid from May.',
        'The control sequence at the end of the top line',
        "of your error message was never \\def'ed. If you have",
        "misspelled it (e.g., `\\hobx'), type `I' and the correct",
        "spelling (e.g., `I\\hbox'). Otherwise just continue,",
        "and I'll forget about whatever was undefined.",
        '',
      ]
    if (i === 121) return ["LaTeX Warning: Reference `tab:surcharge' on page 88 undefined on input line 517.", '']
    if (i % 3 === 0)
      return [
        `Overfull \\hbox (${roll(40)}.${two(roll(99_999), 5)}pt too wide) in paragraph at lines ${100 + i * 3}--${103 + i * 3}`,
        `[]\\T1/lmr/m/n/10 ${pick(roll, VERBS)} the ${pick(roll, NOUNS)} of each ${pick(roll, NOUNS)} be-fore the pe-ri-od is closed`,
        ' []',
        '',
      ]
    if (i % 3 === 1) return `(./chapters/${pick(roll, NOUNS).toLowerCase()}-${i}.tex [${i}] [${i + 1}])`
    return [`Underfull \\vbox (badness ${roll(10_000)}) has occurred while \\output is active []`, '']
  })
  return `${[
    'This is pdfTeX, Version 3.141592653-2.6-1.40.25 (TeX Live 2023) (preloaded format=pdflatex 2026.1.4)',
    'entering extended mode',
    ' restricted \\write18 enabled.',
    '**handbook.tex',
    '(./handbook.tex',
    'LaTeX2e <2022-11-01> patch level 1',
    ...lines(60, (i) => [
      `(/usr/share/texlive/texmf-dist/tex/latex/${pick(roll, VERBS)}/${pick(roll, NOUNS).toLowerCase()}${i}.sty`,
      `Package: ${pick(roll, NOUNS).toLowerCase()}${i} 2022/0${1 + roll(8)}/1${roll(9)} v${roll(5)}.${roll(9)} ${pick(roll, VERBS)} tools`,
      ')',
    ]),
    ...body,
    'LaTeX Warning: There were undefined references.',
    '',
    ' )',
    'Output written on handbook.pdf (164 pages, 1840213 bytes).',
  ].join('\n')}\n`
}

/** The list of CTest, the output of one failed test in it, and the summary below. */
export function ctest(): string {
  const roll = dice(312)
  const tests = lines(180, (i) => {
    const name = `${pick(roll, NOUNS).toLowerCase()}.${pick(roll, VERBS)}_${i}`
    const start = `        Start ${String(i + 1).padStart(3)}: `
    const line = `${String(i + 1).padStart(3)}/180 Test ${`#${i + 1}:`.padStart(5)} `
    if (i === 26)
      return [
        `${start}grid.interpolate_edges`,
        `${line}grid.interpolate_edges ............***Failed    0.08 sec`,
        'reading fixtures/grid_64.bin',
        'max deviation 3.118e-02 at cell (63, 17), tolerance 1.0e-06',
        '',
      ]
    if (i === 151)
      return [
        `${start}solver.restart_from_checkpoint`,
        `${line}solver.restart_from_checkpoint ....***Exception: SegFault  1.94 sec`,
        'loading checkpoint step 4000',
        '',
      ]
    return [`${start}${name}`, `${line}${`${name} `.padEnd(34, '.')}   Passed    ${roll(3)}.${two(roll(99))} sec`]
  })
  return `Test project /build/release\n${tests.join('\n')}\n\n99% tests passed, 2 tests failed out of 180\n\nTotal Test time (real) = 201.44 sec\n\nThe following tests FAILED:\n\t 27 - grid.interpolate_edges (Failed)\n\t152 - solver.restart_from_checkpoint (SEGFAULT)\nErrors while running CTest\n`
}

/** Suites of ScalaTest with one failed expectation. */
export function sbt(): string {
  const roll = dice(313)
  const suites = lines(42, (i) => [
    `[info] ${pick(roll, NOUNS)}${pick(roll, NOUNS)}${i}Spec:`,
    `[info] ${pick(roll, NOUNS)}`,
    ...lines(5, (t) =>
      i === 12 && t === 3
        ? [
            '[info] - should convert crowns at the rate of the booking day *** FAILED ***',
            '[info]   BigDecimal("148.20") was not equal to BigDecimal("148.02") (ExchangeSpec.scala:93)',
          ]
        : `[info] - should ${pick(roll, VERBS)} ${pick(roll, ['an empty list', 'two of a kind', 'a closed period', 'a large batch'])} ${roll(90)}`,
    ),
  ])
  return `${[
    '[info] welcome to sbt 1.10.1 (Eclipse Adoptium Java 21.0.3)',
    '[info] loading project definition from /build/shop/project',
    '[info] compiling 388 Scala sources to /build/shop/target/scala-3.4.2/classes ...',
    ...lines(30, (i) => [
      `[warn] /build/shop/src/main/scala/shop/${pick(roll, NOUNS)}${i}.scala:${10 + roll(200)}:${1 + roll(30)}: unused import`,
      `[warn] import shop.${pick(roll, NOUNS).toLowerCase()}.*`,
      '[warn]        ^',
    ]),
    '[warn] 30 warnings found',
    '[info] done compiling',
    ...suites,
    '[info] Run completed in 48 seconds, 211 milliseconds.',
    '[info] Total number of tests run: 210',
    '[info] Suites: completed 42, aborted 0',
    '[info] Tests: succeeded 209, failed 1, canceled 0, ignored 0, pending 0',
    '[info] *** 1 TEST FAILED ***',
    '[error] Failed tests:',
    '[error] \tshop.money.ExchangeSpec',
    '[error] (Test / test) sbt.TestsFailedException: Tests unsuccessful',
    '[error] Total time: 131 s (02:11), completed Nov 16, 2026, 9:14:02 AM',
  ].join('\n')}\n`
}

/** The console of Robot Framework, where each test is one line between rules. */
export function robot(): string {
  const roll = dice(314)
  const rule = '='.repeat(78)
  const thin = '-'.repeat(78)
  const suites = lines(24, (s) => [
    `Warehouse.${pick(roll, NOUNS)} ${s} :: Doors, belts and scales of hall ${1 + (s % 4)}`.slice(0, 78),
    rule,
    ...lines(6, (t) => {
      const title = `${pick(roll, VERBS)} ${pick(roll, NOUNS)} on belt ${s}-${t}`
      if (s === 17 && t === 2)
        return [
          `${'Scale Reports Weight After Power Cut'.padEnd(70)}| FAIL |`,
          "Keyword 'Wait For Weight' failed after retrying for 1 minute. The last error was: TypeError: reading is None for scale S-17",
          thin,
        ]
      return [`${title.padEnd(70)}| PASS |`, thin]
    }),
    `Warehouse.Suite ${s}${' '.repeat(54)}| ${s === 17 ? 'FAIL' : 'PASS'} |`,
    `6 tests, ${s === 17 ? '5 passed, 1 failed' : '6 passed, 0 failed'}`,
    rule,
  ])
  return `${rule}\nWarehouse\n${rule}\n${suites.join('\n')}\nWarehouse${' '.repeat(61)}| FAIL |\n144 tests, 143 passed, 1 failed\n${rule}\nOutput:  /srv/robot/output.xml\nLog:     /srv/robot/log.html\nReport:  /srv/robot/report.html\n`
}

/** The log of a whole run of a workflow, with the name of the job and the step before each line. */
export function workflowLog(): string {
  const roll = dice(315)
  const at = (i: number): string => `2026-11-16T${clock(i, 9)}.${two(roll(9_999_999), 7)}Z`
  const setup = lines(
    40,
    (i) =>
      `deploy\tSet up job\t${at(i)} ${i === 0 ? "Current runner version: '2.319.1'" : `Download action repository 'acme/${pick(roll, VERBS)}-${i}@v${1 + roll(4)}' (SHA:${hex(roll, 40)})`}`,
  )
  const push = lines(
    150,
    (i) =>
      `deploy\tPush image\t${at(60 + i)} ${hex(roll, 12)}: ${pick(roll, ['Preparing', 'Waiting', 'Layer already exists', 'Pushed'])}`,
  )
  const rollout = lines(90, (i) => {
    if (i === 71) return `deploy\tRoll out\t${at(240 + i)} error: deployment "basket" exceeded its progress deadline`
    if (i === 72) return `deploy\tRoll out\t${at(240 + i)} ##[error]Process completed with exit code 1.`
    if (i > 72)
      return `deploy\tPost checkout\t${at(240 + i)} [command]/usr/bin/git config --local --unset-all core.sshCommand.${i}`
    return `deploy\tRoll out\t${at(240 + i)} Waiting for deployment "basket" rollout to finish: ${i < 30 ? 1 : 2} out of 4 new replicas have been updated...`
  })
  const warn = `deploy\tPush image\t${at(59)} ##[warning]Image tag "basket:1.18" already exists and is overwritten`
  return `${[...setup, warn, ...push, ...rollout].join('\n')}\n`
}
