// Held-out outputs of builds, tests and linters, in the form that those programs print.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

export function goRace(): string {
  const roll = dice(11)
  const packages = ['billing', 'cart', 'catalog', 'geo', 'ledger', 'mail', 'queue', 'search']
  const out = packages.flatMap((name, at) => {
    const tests = lines(18, (i) => {
      const test = `Test${pick(roll, NOUNS)}${i}_${pick(roll, VERBS)}`
      const body = [`=== RUN   ${test}`]
      if (roll(3) === 0) body.push(`    ${name}_test.go:${20 + i * 9}: seeded with ${roll(9_000)}`)
      if (at === 4 && i === 11) return [...body, ...raceReport(), `--- FAIL: ${test} (0.21s)`]
      return [...body, `--- PASS: ${test} (0.${two(roll(30))}s)`]
    })
    const end =
      at === 4
        ? ['FAIL', `FAIL\texample.com/shop/${name}\t3.412s`]
        : ['PASS', `ok  \texample.com/shop/${name}\t1.${roll(900)}s`]
    return [...tests, ...end]
  })
  return `${[...out, 'FAIL'].join('\n')}\n`
}

function raceReport(): string[] {
  return [
    '==================',
    'WARNING: DATA RACE',
    'Write at 0x00c0001a4078 by goroutine 41:',
    '  example.com/shop/ledger.(*Book).Post()',
    '      /app/ledger/book.go:118 +0x9c',
    '  example.com/shop/ledger.TestConcurrentPost.func1()',
    '      /app/ledger/ledger_test.go:203 +0x64',
    '',
    'Previous read at 0x00c0001a4078 by goroutine 38:',
    '  example.com/shop/ledger.(*Book).Balance()',
    '      /app/ledger/book.go:87 +0x44',
    '  example.com/shop/ledger.TestConcurrentPost.func2()',
    '      /app/ledger/ledger_test.go:211 +0x50',
    '',
    'Goroutine 41 (running) created at:',
    '  example.com/shop/ledger.TestConcurrentPost()',
    '      /app/ledger/ledger_test.go:201 +0x2f4',
    '  testing.tRunner()',
    '      /usr/local/go/src/testing/testing.go:1689 +0x21e',
    '==================',
    '    testing.go:1398: race detected during execution of test',
  ]
}

export function gradle(): string {
  const roll = dice(12)
  const modules = lines(26, (i) => `${pick(roll, NOUNS).toLowerCase()}-${['api', 'core', 'web'][i % 3]}${i}`)
  const tasks = modules.flatMap((name, at) => {
    const steps = [
      'compileKotlin',
      'compileJava',
      'processResources',
      'classes',
      'jar',
      'compileTestKotlin',
      'testClasses',
      'test',
    ]
    return steps.flatMap((step) => {
      const head = `> Task :${name}:${step}${pick(roll, ['', '', ' UP-TO-DATE', ' NO-SOURCE', ' FROM-CACHE'])}`
      if (at === 17 && step === 'compileTestKotlin')
        return [
          `> Task :${name}:${step} FAILED`,
          `e: file:///app/${name}/src/test/kotlin/RefundRulesTest.kt:64:31 Type mismatch: inferred type is String? but String was expected`,
        ]
      if (step === 'compileKotlin' && roll(4) === 0)
        return [
          head,
          `w: file:///app/${name}/src/main/kotlin/Routes.kt:${roll(200)}:${roll(40)} Parameter 'context' is never used`,
        ]
      return [head]
    })
  })
  return `${[
    'Starting a Gradle Daemon, 1 incompatible Daemon could not be reused, use --status for details',
    'Calculating task graph as no cached configuration is available for tasks: build',
    ...tasks,
    '',
    'FAILURE: Build failed with an exception.',
    '',
    '* What went wrong:',
    `Execution failed for task ':${modules[17]}:compileTestKotlin'.`,
    '> A failure occurred while executing org.jetbrains.kotlin.compilerRunner.GradleCompilerRunnerWithWorkers$GradleKotlinCompilerWorkAction',
    '   > Compilation error. See log for more details',
    '',
    '* Try:',
    '> Run with --stacktrace option to get the stack trace.',
    '> Run with --info or --debug option to get more log output.',
    '> Get more help at https://help.gradle.org.',
    '',
    'BUILD FAILED in 2m 14s',
    '208 actionable tasks: 131 executed, 44 from cache, 33 up-to-date',
  ].join('\n')}\n`
}

export function surefire(): string {
  const roll = dice(13)
  const suites = lines(70, (i) => {
    const name = `com.example.shop.${pick(roll, NOUNS).toLowerCase()}.${pick(roll, NOUNS)}${i}Test`
    const ran = 2 + roll(19)
    const head = `[INFO] Running ${name}`
    const noise =
      roll(5) === 0
        ? [
            `${clock(i)}.${two(roll(999), 3)} [main] WARN  o.h.orm.deprecation - HHH90000025: H2Dialect does not need to be specified explicitly`,
          ]
        : []
    if (i === 22)
      return [
        '[INFO] Running com.example.shop.tax.VatRulesTest',
        '[ERROR] Tests run: 14, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.482 s <<< FAILURE! -- in com.example.shop.tax.VatRulesTest',
        '[ERROR] com.example.shop.tax.VatRulesTest.reducedRateForBooks -- Time elapsed: 0.031 s <<< FAILURE!',
        'org.opentest4j.AssertionFailedError: expected: <7.00> but was: <19.00>',
        '\tat org.junit.jupiter.api.AssertionFailureBuilder.build(AssertionFailureBuilder.java:151)',
        '\tat org.junit.jupiter.api.AssertEquals.failNotEqual(AssertEquals.java:197)',
        '\tat com.example.shop.tax.VatRulesTest.reducedRateForBooks(VatRulesTest.java:88)',
        '\tat java.base/java.lang.reflect.Method.invoke(Method.java:580)',
        '',
      ]
    return [
      head,
      ...noise,
      `[INFO] Tests run: ${ran}, Failures: 0, Errors: 0, Skipped: ${roll(8) === 0 ? 1 : 0}, Time elapsed: ${roll(3)}.${two(roll(999), 3)} s -- in ${name}`,
    ]
  })
  return `${[
    '[INFO] Scanning for projects...',
    '[INFO] ',
    '[INFO] -----------------------< com.example.shop:backend >------------------------',
    '[INFO] Building backend 4.2.0-SNAPSHOT',
    '[INFO] --- surefire:3.2.5:test (default-test) @ backend ---',
    '[INFO]  T E S T S',
    ...suites,
    '[INFO] ',
    '[INFO] Results:',
    '[INFO] ',
    '[ERROR] Failures: ',
    '[ERROR]   VatRulesTest.reducedRateForBooks:88 expected: <7.00> but was: <19.00>',
    '[INFO] ',
    '[ERROR] Tests run: 771, Failures: 1, Errors: 0, Skipped: 9',
    '[INFO] ',
    '[INFO] ------------------------------------------------------------------------',
    '[INFO] BUILD FAILURE',
    '[INFO] Total time:  01:07 min',
    '[ERROR] Failed to execute goal org.apache.maven.plugins:maven-surefire-plugin:3.2.5:test (default-test) on project backend: There are test failures.',
    '[ERROR] -> [Help 1]',
  ].join('\n')}\n`
}

export function webpack(): string {
  const roll = dice(14)
  const assets = lines(
    90,
    (i) =>
      `asset ${hex(roll, 20)}.${pick(roll, ['js', 'css', 'woff2', 'svg'])} ${1 + roll(240)}.${roll(9)} KiB [emitted] [immutable]${i % 3 === 0 ? ' [minimized]' : ''} (name: page-${i})`,
  )
  const modules = lines(
    160,
    (i) =>
      `  ./src/${pick(roll, NOUNS).toLowerCase()}/${pick(roll, VERBS)}${i}.tsx ${roll(40)}.${roll(9)} KiB [built] [code generated]`,
  )
  return `${[
    ...assets.slice(0, 40),
    'asset vendor.4be1.js 6.31 MiB [emitted] [immutable] [minimized] [big] (name: vendor)',
    ...assets.slice(40),
    'orphan modules 412 KiB [orphan] 233 modules',
    'cacheable modules 4.1 MiB',
    ...modules,
    '',
    'WARNING in asset size limit: The following asset(s) exceed the recommended size limit (244 KiB).',
    'Assets:',
    '  vendor.4be1.js (6.31 MiB)',
    '',
    'ERROR in ./src/checkout/summary.tsx 14:0-52',
    "Module not found: Error: Can't resolve '@shop/currency' in '/app/src/checkout'",
    "resolve '@shop/currency' in '/app/src/checkout'",
    '  Parsed request is a module',
    '  using description file: /app/package.json (relative path: ./src/checkout)',
    ...lines(
      40,
      (i) =>
        `      ${' '.repeat(i % 6)}/app/node_modules/@shop/currency${pick(roll, ['', '.js', '.ts', '.tsx', '.json'])} doesn't exist`,
    ),
    '',
    'webpack 5.91.0 compiled with 1 error and 1 warning in 18412 ms',
  ].join('\n')}\n`
}

export function dockerBuild(): string {
  const roll = dice(15)
  const packages = lines(
    150,
    (i) =>
      `#11 ${(i * 0.31 + 2).toFixed(2)} Get:${i + 1} http://mirror.example/debian bookworm/main amd64 lib${pick(roll, NOUNS).toLowerCase()}${i} amd64 ${roll(9)}.${roll(20)}.${roll(9)}-${roll(4)} [${roll(900)} kB]`,
  )
  const native = lines(
    60,
    (i) => `#14 ${(i * 0.8 + 10).toFixed(2)}   CXX(target) Release/obj.target/canvas/src/${pick(roll, NOUNS)}${i}.o`,
  )
  return `${[
    '#1 [internal] load build definition from Dockerfile',
    '#1 transferring dockerfile: 1.42kB done',
    '#1 DONE 0.0s',
    '#4 [build 1/7] FROM docker.io/library/node:22-bookworm-slim@sha256:' + hex(roll, 64),
    ...lines(24, (i) => `#4 sha256:${hex(roll, 64)} ${i + 1}.${two(roll(99))}MB / 48.30MB ${(i / 8).toFixed(1)}s`),
    '#4 DONE 4.1s',
    '#11 [build 3/7] RUN apt-get update && apt-get install -y --no-install-recommends build-essential',
    ...packages,
    '#11 DONE 61.0s',
    '#14 [build 5/7] RUN npm ci',
    ...native,
    '#14 61.20 ../src/backend/ImageBackend.cc:9:10: fatal error: pixman.h: No such file or directory',
    '#14 61.20     9 | #include <pixman.h>',
    '#14 61.20 compilation terminated.',
    '#14 61.22 make: *** [canvas.target.mk:141: Release/obj.target/canvas/src/backend/ImageBackend.o] Error 1',
    ...lines(30, (i) => `#14 61.${30 + i} npm error gyp verb step ${i} ${hex(roll, 12)}`),
    '#14 ERROR: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1',
    '------',
    ' > [build 5/7] RUN npm ci:',
    '------',
    'Dockerfile:14',
    '--------------------',
    '  12 |     COPY package.json package-lock.json ./',
    '  14 | >>> RUN npm ci',
    '--------------------',
    'ERROR: failed to solve: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1',
  ].join('\n')}\n`
}

export function rspec(): string {
  const roll = dice(16)
  const groups = lines(32, (g) => [
    '',
    `${pick(roll, NOUNS)}${g}`,
    ...lines(3, (k) => [
      `  #${pick(roll, VERBS)}_${k}`,
      ...lines(4, (i) => {
        if (g === 9 && k === 1 && i === 2) return '    refuses a voucher that has run out (FAILED - 1)'
        if (g === 25 && k === 0 && i === 3) return '    sends one mail per parcel (FAILED - 2)'
        return `    ${pick(roll, VERBS)}s the ${pick(roll, NOUNS).toLowerCase()} of a customer with ${roll(90)} items`
      }),
    ]),
  ])
  return `${[
    'Randomized with seed 48213',
    ...groups,
    '',
    'Failures:',
    '',
    '  1) Voucher#redeem refuses a voucher that has run out',
    '     Failure/Error: expect { voucher.redeem(basket) }.to raise_error(Voucher::Expired)',
    '       expected Voucher::Expired but nothing was raised',
    "     # ./spec/models/voucher_spec.rb:57:in `block (3 levels) in <top (required)>'",
    '',
    '  2) ParcelMailer#dispatch sends one mail per parcel',
    '     Failure/Error: expect(deliveries.count).to eq(3)',
    '',
    '       expected: 3',
    '            got: 6',
    '',
    '       (compared using ==)',
    "     # ./spec/mailers/parcel_mailer_spec.rb:31:in `block (3 levels) in <top (required)>'",
    '',
    'Finished in 12.84 seconds (files took 3.9 seconds to load)',
    '384 examples, 2 failures',
    '',
    'Failed examples:',
    '',
    'rspec ./spec/models/voucher_spec.rb:52 # Voucher#redeem refuses a voucher that has run out',
    'rspec ./spec/mailers/parcel_mailer_spec.rb:24 # ParcelMailer#dispatch sends one mail per parcel',
  ].join('\n')}\n`
}

export function phpunit(): string {
  const roll = dice(17)
  const suites = lines(40, (s) => [
    `${pick(roll, NOUNS)} ${s} (App\\Tests\\Unit\\${pick(roll, NOUNS)}${s})`,
    ...lines(8, (i) => {
      if (s === 3 && i === 5)
        return [
          ' ✘ Price is rounded to five cents',
          '   │',
          '   │ Failed asserting that 12.349999999999998 matches expected 12.35.',
          '   │',
          '   │ /app/tests/Unit/SwissRoundingTest.php:41',
          '   │',
        ]
      return ` ✔ ${pick(roll, NOUNS)} ${i} can ${pick(roll, VERBS)} with ${roll(80)} rows`
    }),
    '',
  ])
  return `${[
    'PHPUnit 10.5.20 by Sebastian Bergmann and contributors.',
    '',
    'Runtime:       PHP 8.3.6',
    'Configuration: /app/phpunit.xml',
    '',
    ...suites,
    'Time: 00:04.113, Memory: 58.50 MB',
    '',
    'FAILURES!',
    'Tests: 320, Assertions: 1188, Failures: 1.',
  ].join('\n')}\n`
}

export function dotnet(): string {
  const roll = dice(18)
  const projects = lines(18, (p) => [
    `  Shop.${pick(roll, NOUNS)}${p} -> /app/src/Shop.P${p}/bin/Release/net8.0/Shop.P${p}.dll`,
    ...lines(
      7,
      () =>
        `/app/src/Shop.P${p}/${pick(roll, NOUNS)}Service.cs(${roll(400)},${roll(60)}): warning CS8618: Non-nullable property '${pick(roll, NOUNS)}' must contain a non-null value when exiting constructor. Consider declaring the property as nullable. [/app/src/Shop.P${p}/Shop.P${p}.csproj]`,
    ),
  ])
  projects.splice(
    52,
    0,
    "/app/src/Shop.P6/ExportJob.cs(212,27): error CS1061: 'ExportOptions' does not contain a definition for 'Compression' and no accessible extension method 'Compression' accepting a first argument of type 'ExportOptions' could be found [/app/src/Shop.P6/Shop.P6.csproj]",
    "/app/src/Shop.P6/Shop.P6.csproj : warning NU1903: Package 'System.Text.Json' 8.0.0 has a known high severity vulnerability, https://example.com/advisories/2101",
  )
  return `${['MSBuild version 17.9.6+a4ecab324 for .NET', '  Determining projects to restore...', '  All projects are up-to-date for restore.', ...projects, '', 'Build FAILED.', '', '    127 Warning(s)', '    1 Error(s)', '', 'Time Elapsed 00:00:41.77'].join('\n')}\n`
}

export function clangTidy(): string {
  const roll = dice(19)
  const found = lines(48, (i) => {
    const at = `/app/src/${pick(roll, NOUNS).toLowerCase()}/${pick(roll, VERBS)}${i}.cpp:${10 + roll(500)}:${1 + roll(60)}`
    if (i === 31)
      return [
        '/app/src/stock/reserve.cpp:144:12: warning: Called C++ object pointer is null [clang-analyzer-core.CallAndMessage]',
        '  144 |     return shelf->take(count);',
        '      |            ^~~~~',
        "/app/src/stock/reserve.cpp:131:7: note: Assuming 'shelf' is null",
        '  131 |   if (!shelf)',
        '      |       ^~~~~~',
      ]
    return [
      `${at}: warning: use auto when initializing with a cast to avoid duplicating the type name [modernize-use-auto]`,
      `  ${roll(500)} |   ${pick(roll, NOUNS)} *${pick(roll, VERBS)} = static_cast<${pick(roll, NOUNS)} *>(raw);`,
      '      |   ^~~~~',
      '      |   auto',
    ]
  })
  return `${['[1/48] Processing file /app/src/main.cpp.', ...found, '12842 warnings generated.', 'Suppressed 12793 warnings (12793 in non-user code).', 'Use -header-filter=.* to display errors from all non-system headers. Use -system-headers to display errors from system headers as well.'].join('\n')}\n`
}

export function mypy(): string {
  const roll = dice(20)
  const found = lines(130, (i) => {
    if (i === 74)
      return [
        'shop/payments/capture.py:203: error: Argument 2 to "capture" of "Gateway" has incompatible type "float"; expected "Decimal"  [arg-type]',
        'shop/payments/capture.py:203: note: Following member(s) of "float" have conflicts:',
      ]
    return `shop/${pick(roll, NOUNS).toLowerCase()}/${pick(roll, VERBS)}_${i}.py:${roll(600)}: error: Function is missing a type annotation for one or more arguments  [no-untyped-def]`
  })
  return `${[...found, 'Found 130 errors in 97 files (checked 412 source files)'].join('\n')}\n`
}

export function coverageTable(): string {
  const roll = dice(21)
  const rows = lines(170, (i) => {
    if (i === 118)
      return `${'shop/payments/refund_rules.py'.padEnd(48)}    211    187     64      2    11%   14-88, 91-203, 210-266`
    const missed = roll(4)
    const name = `shop/${pick(roll, NOUNS).toLowerCase()}/${pick(roll, VERBS)}_${i}.py`
    return `${name.padEnd(48)} ${String(60 + roll(90)).padStart(6)} ${String(missed).padStart(6)} ${String(roll(30)).padStart(6)} ${String(missed).padStart(6)} ${String(99 - missed).padStart(5)}%   ${missed === 0 ? '' : lines(missed, () => String(10 + roll(200))).join(', ')}`
  })
  const rule = '-'.repeat(104)
  return `${['Name                                              Stmts   Miss Branch BrPart  Cover   Missing', rule, ...rows, rule, `${'TOTAL'.padEnd(48)}  17822    466   2410    229    97%`, '', 'Coverage failure: total of 97 is less than fail-under=98'].join('\n')}\n`
}
