// Generators of what builds, linters and test runners print, for the outputs in blind.ts.
import { dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

/** Progress lines and results of Bazel, with the log of one failed test in the middle. */
export function bazel(): string {
  const roll = dice(301)
  const target = (i: number): string =>
    `//${pick(roll, ['pricing', 'stock', 'ledger', 'edge/gateway', 'tools/codegen'])}/${pick(roll, VERBS)}:${pick(roll, NOUNS).toLowerCase()}_${i}_test`
  const progress = lines(170, (i) => {
    if (i === 96)
      return [
        'FAIL: //ledger/closing:month_end_test (Exit 1) (see /home/ci/.cache/bazel/_bazel_ci/8f1/execroot/_main/bazel-out/k8-fastbuild/testlogs/ledger/closing/month_end_test/test.log)',
        'INFO: From Testing //ledger/closing:month_end_test:',
        '==================== Test output for //ledger/closing:month_end_test:',
        'Running main() from gmock_main.cc',
        '[==========] Running 3 tests from 1 test suite.',
        '[ RUN      ] MonthEnd.CarriesOpenItems',
        '[       OK ] MonthEnd.CarriesOpenItems (4 ms)',
        '[ RUN      ] MonthEnd.LeapDay',
        'ledger/closing/month_end_test.cc:88: Failure',
        'Expected equality of these values:',
        '  last_day(2028, 2)',
        '    Which is: 28',
        '  29',
        '[  FAILED  ] MonthEnd.LeapDay (0 ms)',
        '[==========] 3 tests from 1 test suite ran. (9 ms total)',
        '================================================================================',
      ]
    return `[${two(1_200 + i * 4, 1).replace(/(\d)(\d{3})$/, '$1,$2')} / 1,904] ${40 + roll(20)} / 212 tests; Testing ${target(i)}; ${roll(30)}s linux-sandbox ... (${4 + roll(12)} actions, ${2 + roll(8)} running)`
  })
  const results = lines(210, (i) => {
    if (i === 61) return '//edge/gateway:tls_rotation_test                              TIMEOUT in 300.1s'
    if (i === 144) return '//ledger/closing:month_end_test                               FAILED in 0.4s'
    return `${target(i).padEnd(62)}${i % 3 === 0 ? '(cached) ' : ''}PASSED in ${roll(20)}.${roll(9)}s`
  })
  return `${[
    'INFO: Invocation ID: 2c0f5a3e-11f9-4f2b-8a53-0f2b4a9917d1',
    'INFO: Analyzed 371 targets (112 packages loaded, 5021 targets configured).',
    'INFO: Found 159 targets and 212 test targets...',
    ...progress,
    'INFO: Elapsed time: 318.204s, Critical Path: 301.77s',
    'INFO: 704 processes: 122 internal, 582 linux-sandbox.',
    'INFO: Build completed, 2 tests FAILED, 704 total actions',
    ...results,
    '',
    'Executed 142 out of 212 tests: 210 tests pass and 2 fail locally.',
    'There were tests whose specified size is too big. Use the --test_verbose_timeout_warnings command line option to see which ones these are.',
  ].join('\n')}\n`
}

/** Traced tests of Elixir, one failure among them in the stream itself. */
export function mixTest(): string {
  const roll = dice(302)
  const modules = lines(38, (m) => {
    const noun = pick(roll, NOUNS)
    const head = ['', `Shop.${noun}${m}Test [test/shop/${noun.toLowerCase()}_${m}_test.exs]`]
    const tests = lines(7, (t) => {
      const title = `test ${pick(roll, VERBS)}/2 ${pick(roll, ['returns the record', 'keeps the order', 'ignores blanks', 'is idempotent'])}`
      const line = `L#${12 + t * 9}`
      if (m === 23 && t === 4)
        return [
          `  * test settle/2 waits for the ledger (61.3ms) [L#58]`,
          '',
          '  1) test settle/2 waits for the ledger (Shop.SettlementTest)',
          '     test/shop/settlement_test.exs:58',
          '     ** (exit) exited in: GenServer.call(Shop.Ledger, {:settle, 4417}, 50)',
          '         ** (EXIT) time out',
          '     code: assert {:ok, _} = Settlement.settle(order, ledger: Shop.Ledger)',
          '     stacktrace:',
          '       (elixir 1.17.2) lib/gen_server.ex:1128: GenServer.call/3',
          '       (shop 0.9.1) lib/shop/settlement.ex:41: Shop.Settlement.settle/2',
          '       test/shop/settlement_test.exs:62: (test)',
          '',
        ]
      if (t === 6 && m % 9 === 4) return `  * ${title} (skipped) [${line}]`
      return `  * ${title} (${roll(90)}.${roll(9)}ms) [${line}]`
    })
    return [...head, ...tests]
  })
  return `Compiling 214 files (.ex)\nGenerated shop app\nRunning ExUnit with seed: 480112, max_cases: 1\n${modules.join('\n')}\n\nFinished in 14.2 seconds (0.00s async, 14.2s sync)\n266 tests, 1 failure, 4 skipped\n`
}

/** A build of an app for a phone: very long compiler calls, one Swift error, the list of failed commands at the end. */
export function xcodebuild(): string {
  const roll = dice(303)
  const steps = lines(52, (i) => {
    const file = `${pick(roll, NOUNS)}${pick(roll, ['View', 'Model', 'Store', 'Router'])}${i}.swift`
    const step = [
      `SwiftCompile normal arm64 Compiling\\ ${file} /Users/ci/app/Sources/${file} (in target 'Courier' from project 'Courier')`,
      '    cd /Users/ci/app',
      `    builtin-swiftTaskExecution -- /Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/bin/swift-frontend -frontend -c -primary-file /Users/ci/app/Sources/${file} -target arm64-apple-ios16.0 -enable-objc-interop -sdk iPhoneOS17.5.sdk -module-name Courier -o ${hex(roll, 12)}.o`,
      '',
    ]
    if (i === 19)
      return [
        ...step,
        "/Users/ci/app/Sources/RouteMap.swift:77:22: warning: 'overlays(in:)' was deprecated in iOS 16.0",
        '',
      ]
    if (i !== 33) return step
    return [
      ...step,
      "/Users/ci/app/Sources/DoorCode.swift:118:31: error: value of optional type 'Depot?' must be unwrapped to refer to member 'gate' of wrapped base type 'Depot'",
      '        let gate = stop.depot.gate',
      '                              ^',
      "/Users/ci/app/Sources/DoorCode.swift:118:31: note: chain the optional using '?' to access member 'gate' only for non-'nil' base values",
      '',
    ]
  })
  return `${[
    'Command line invocation:',
    '    /Applications/Xcode.app/Contents/Developer/usr/bin/xcodebuild -scheme Courier -configuration Release build',
    '',
    'Prepare packages',
    '',
    'ComputeTargetDependencyGraph',
    'note: Building targets in dependency order',
    '',
    ...steps,
    '** BUILD FAILED **',
    '',
    '',
    'The following build commands failed:',
    "\tSwiftCompile normal arm64 /Users/ci/app/Sources/DoorCode.swift (in target 'Courier' from project 'Courier')",
    '(1 failure)',
  ].join('\n')}\n`
}

/** The list of a browser test run: a failure, a flaky one, their details below. */
export function playwright(): string {
  const roll = dice(304)
  const browsers = ['chromium', 'firefox', 'webkit'] as const
  const list = lines(230, (i) => {
    const where = `[${pick(roll, browsers)}] › ${pick(roll, NOUNS).toLowerCase()}.spec.ts:${10 + roll(80)}:5 › ${pick(roll, ['guest', 'member', 'clerk'])} › can ${pick(roll, VERBS)} item ${i}`
    if (i === 117) return '  ✘  118 [webkit] › checkout.spec.ts:44:5 › guest › pays with a saved card (30.2s)'
    if (i === 118)
      return '  ✘  119 [webkit] › checkout.spec.ts:44:5 › guest › pays with a saved card (retry #1) (30.1s)'
    if (i === 180) return '  ✘  181 [firefox] › search.spec.ts:71:5 › member › sees suggestions (5.3s)'
    if (i === 181) return '  ✓  182 [firefox] › search.spec.ts:71:5 › member › sees suggestions (retry #1) (1.1s)'
    if (i % 31 === 7) return `  -  ${i + 1} ${where}`
    return `  ✓  ${i + 1} ${where} (${roll(4)}.${roll(9)}s)`
  })
  const detail = [
    '  1) [webkit] › checkout.spec.ts:44:5 › guest › pays with a saved card ─────────────────────────────',
    '',
    '    Test timeout of 30000ms exceeded.',
    '',
    '    Error: locator.click: Test timeout of 30000ms exceeded.',
    '    Call log:',
    "      - waiting for getByRole('button', { name: 'Pay now' })",
    '      -   locator resolved to <button disabled type="submit">Pay now</button>',
    '      - attempting click action',
    ...lines(36, (i) => [
      '      -   waiting for element to be visible, enabled and stable',
      '      -   element is not enabled',
      `      - retrying click action, attempt #${i + 1}`,
      `      -   waiting ${i < 2 ? 20 : i < 4 ? 100 : 500}ms`,
    ]),
    '',
    '      52 |     await page.getByLabel("Card").selectOption("saved")',
    '    > 53 |     await page.getByRole("button", { name: "Pay now" }).click()',
    '         |                                                         ^',
    '      54 |     await expect(page).toHaveURL(/done/)',
    '        at /app/e2e/checkout.spec.ts:53:57',
    '',
  ]
  return `\nRunning 228 tests using 6 workers\n\n${list.join('\n')}\n\n\n${detail.join('\n')}\n  1 failed\n    [webkit] › checkout.spec.ts:44:5 › guest › pays with a saved card ──────────────────────────────\n  1 flaky\n    [firefox] › search.spec.ts:71:5 › member › sees suggestions ──────────────────────────────────\n  8 skipped\n  218 passed (4.6m)\n`
}

/** Findings of linters for Go, each with its source line. Most are of style, two are not. */
export function golangciLint(): string {
  const roll = dice(305)
  const found = lines(95, (i) => {
    const file = `internal/${pick(roll, NOUNS).toLowerCase()}/${pick(roll, VERBS)}.go:${10 + roll(400)}:${2 + roll(30)}`
    if (i === 38)
      return [
        'internal/transfer/batch.go:211:3: lostcancel: the cancel function is not used on all paths (possible context leak) (govet)',
        '\t\tctx, cancel := context.WithTimeout(ctx, s.limit)',
        '\t\t^',
      ]
    if (i === 70)
      return [
        'internal/login/token.go:57:12: G401: Use of weak cryptographic primitive (gosec)',
        '\tsum := md5.Sum([]byte(secret + user))',
        '\t       ^',
      ]
    if (i % 2 === 0)
      return [
        `${file}: exported: exported method ${pick(roll, NOUNS)}${i}.${pick(roll, VERBS)} should have comment or be unexported (revive)`,
        `func (s *${pick(roll, NOUNS)}) Do${i}(ctx context.Context) error {`,
        '^',
      ]
    return [
      `${file}: line is ${121 + roll(40)} characters (lll)`,
      `\treturn fmt.Errorf("${pick(roll, VERBS)} ${pick(roll, NOUNS)} ${i}: %w", err)`,
    ]
  })
  return `level=warning msg="[config_reader] The configuration option \`run.skip-dirs\` is deprecated, please use \`issues.exclude-dirs\`."\n${found.join('\n')}\n95 issues:\n* gosec: 1\n* govet: 1\n* lll: 46\n* revive: 47\n`
}

/** A build of Haskell packages: many compiled modules, many warnings about imports, one type error. */
export function cabal(): string {
  const roll = dice(306)
  const modules = lines(118, (i) => {
    const name = `Shop.${pick(roll, NOUNS)}.${pick(roll, NOUNS)}${i}`
    const file = `src/${name.replaceAll('.', '/')}.hs`
    const line = `[${String(i + 1).padStart(3)} of 164] Compiling ${name.padEnd(30)} ( ${file}, dist-newstyle/build/x86_64-linux/ghc-9.6.5/shop-0.4/build/${name.replaceAll('.', '/')}.o )`
    if (i % 6 !== 3) return line
    return [
      line,
      '',
      `${file}:${8 + roll(20)}:1: warning: [-Wunused-imports]`,
      `    The import of ‘Data.${pick(roll, ['Maybe', 'List', 'Char', 'Foldable'])}’ is redundant`,
      '      except perhaps to import instances from it',
      '  |',
      `${8 + roll(2)} | import Data.${pick(roll, ['Maybe', 'List', 'Char', 'Foldable'])}`,
      '  | ^^^^^^^^^^^^^^^^^',
    ]
  })
  return `${[
    'Resolving dependencies...',
    'Build profile: -w ghc-9.6.5 -O1',
    'In order, the following will be built (use -v for more details):',
    ' - shop-0.4 (lib) (file src/Shop/Tariff/Zone.hs changed)',
    ...modules,
    '[119 of 164] Compiling Shop.Tariff.Zone  ( src/Shop/Tariff/Zone.hs, dist-newstyle/build/x86_64-linux/ghc-9.6.5/shop-0.4/build/Shop/Tariff/Zone.o )',
    '',
    'src/Shop/Tariff/Zone.hs:64:27: error: [GHC-83865]',
    "    • Couldn't match expected type ‘Map ZoneId Cents’",
    '                  with actual type ‘[(ZoneId, Cents)]’',
    '    • In the second argument of ‘lookupZone’, namely ‘(toPairs table)’',
    '      In the expression: lookupZone zone (toPairs table)',
    '   |',
    '64 |   in lookupZone zone (toPairs table)',
    '   |                           ^^^^^^^^^^^^^',
    'Error: cabal: Failed to build shop-0.4.',
  ].join('\n')}\n`
}

/** An install of Yarn with its codes. A peer is missing, and one package has a wrong checksum. */
export function yarn(): string {
  const roll = dice(307)
  const scope = ['@babel', '@jest', '@types', '@aws-sdk', '@radix-ui'] as const
  const fetched = lines(330, (i) => {
    if (i === 203) return "➤ YN0018: │ money-format@npm:3.1.4: The remote archive doesn't match the expected checksum"
    if (i % 40 === 11)
      return `➤ YN0019: │ ${pick(roll, NOUNS).toLowerCase()}-kit-npm-${roll(9)}.${roll(20)}.0-${hex(roll, 10)}-${hex(roll, 10)}.zip appears to be unused - removing`
    return `➤ YN0013: │ ${pick(roll, scope)}/${pick(roll, VERBS)}-${pick(roll, NOUNS).toLowerCase()}@npm:${roll(9)}.${roll(20)}.${roll(9)} can't be found in the cache and will be fetched from the remote registry`
  })
  const peers = lines(24, (i) =>
    i === 15
      ? "➤ YN0002: │ @shop/checkout@workspace:packages/checkout doesn't provide react-dom (p4c21a), requested by @shop/forms"
      : `➤ YN0060: │ @shop/${pick(roll, NOUNS).toLowerCase()}-${i}@workspace:packages/p${i} provides eslint (p${hex(roll, 5)}) with version 9.6.0, which doesn't satisfy what eslint-plugin-${pick(roll, VERBS)} requests`,
  )
  return `${[
    '➤ YN0000: · Yarn 4.3.1',
    '➤ YN0000: ┌ Resolution step',
    '➤ YN0000: └ Completed in 2s 118ms',
    '➤ YN0000: ┌ Post-resolution validation',
    ...peers,
    '➤ YN0000: └ Completed',
    '➤ YN0000: ┌ Fetch step',
    ...fetched,
    '➤ YN0000: └ Completed in 31s 402ms',
    '➤ YN0000: · Failed with errors in 33s 870ms',
  ].join('\n')}\n`
}
