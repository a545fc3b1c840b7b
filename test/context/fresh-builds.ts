// Generators of what builds and linters print, for the outputs in fresh.ts.
import { dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

const LIBRARIES = ['pricing', 'stock', 'quote', 'tariff', 'ledger', 'wire'] as const

/** Ninja with two broken steps, one of the compiler and one of the linker, among warnings that do not matter. */
export function ninja(): string {
  const roll = dice(4_101)
  const signedness = (source: string): string[] => {
    const line = 20 + roll(200)
    return [
      `../${source}: In function ‘void fill(const std::vector<Row>&)’:`,
      `../${source}:${line}:23: warning: comparison of integer expressions of different signedness: ‘int’ and ‘std::vector<Row>::size_type’ {aka ‘long unsigned int’} [-Wsign-compare]`,
      `  ${line} |   for (int i = 0; i < rows.size(); ++i) {`,
      '      |                   ~~^~~~~~~~~~~~~',
    ]
  }
  const steps = lines(246, (i) => {
    const at = `[${i + 1}/251]`
    if (i === 118) return [`${at} Building CXX object src/tariff/CMakeFiles/tariff.dir/zone_table.cc.o`, ...zoneTable()]
    if (i === 203) return [`${at} Linking CXX executable bin/quote_server`, ...quoteServer()]
    const library = pick(roll, LIBRARIES)
    const file = `${pick(roll, NOUNS).toLowerCase()}_${pick(roll, VERBS)}_${i}.cc`
    if (i % 31 === 30) return `${at} Linking CXX static library src/${library}/lib${library}_${i}.a`
    const step = `${at} Building CXX object src/${library}/CMakeFiles/${library}.dir/${file}.o`
    return roll(19) === 0 ? [step, ...signedness(`src/${library}/${file}`)] : step
  })
  return `${[
    "ninja: Entering directory `build'",
    ...steps,
    'ninja: build stopped: cannot make progress due to previous errors.',
  ].join('\n')}\n`
}

function zoneTable(): string[] {
  return [
    'FAILED: src/tariff/CMakeFiles/tariff.dir/zone_table.cc.o ',
    '/usr/bin/c++ -DTARIFF_V2 -I../src -isystem ../third_party/abseil-cpp -O2 -g -DNDEBUG -std=gnu++20 -Wall -Wextra -MD -MT src/tariff/CMakeFiles/tariff.dir/zone_table.cc.o -MF src/tariff/CMakeFiles/tariff.dir/zone_table.cc.o.d -o src/tariff/CMakeFiles/tariff.dir/zone_table.cc.o -c ../src/tariff/zone_table.cc',
    '../src/tariff/zone_table.cc: In instantiation of ‘auto tariff::ZoneTable<Key>::nearest(const Key&) const [with Key = tariff::PostalCode]’:',
    '../src/tariff/zone_table.cc:131:34:   required from here',
    '../src/tariff/zone_table.cc:97:25: error: no match for ‘operator-’ (operand types are ‘const tariff::PostalCode’ and ‘const tariff::PostalCode’)',
    '   97 |     return std::abs(low - key);',
    '      |                     ~~~~^~~~~',
    'In file included from /usr/include/c++/13/bits/stl_algobase.h:67,',
    '                 from /usr/include/c++/13/map:62,',
    '                 from ../src/tariff/zone_table.h:5,',
    '                 from ../src/tariff/zone_table.cc:1:',
    '/usr/include/c++/13/bits/stl_iterator.h:621:5: note: candidate: ‘template<class _IteratorL, class _IteratorR> constexpr decltype ((__y.base() - __x.base())) std::operator-(const reverse_iterator<_IteratorL>&, const reverse_iterator<_IteratorR>&)’',
    '  621 |     operator-(const reverse_iterator<_IteratorL>& __x,',
    '      |     ^~~~~~~~',
    '/usr/include/c++/13/bits/stl_iterator.h:621:5: note:   template argument deduction/substitution failed:',
    '../src/tariff/zone_table.cc:97:25: note:   ‘const tariff::PostalCode’ is not derived from ‘const std::reverse_iterator<_IteratorL>’',
  ]
}

function quoteServer(): string[] {
  return [
    'FAILED: bin/quote_server ',
    ': && /usr/bin/c++ -O2 -g -DNDEBUG src/quote/CMakeFiles/quote_server.dir/main.cc.o -o bin/quote_server src/quote/libquote.a src/wire/libwire.a -lpthread -lssl -lcrypto && :',
    "/usr/bin/ld: src/quote/libquote.a(retry.cc.o): in function `quote::Retry::next()':",
    "/srv/build/shop/build/../src/quote/retry.cc:58:(.text+0x1f4): undefined reference to `quote::jitter(std::chrono::duration<long, std::ratio<1l, 1000l> >)'",
    'collect2: error: ld returned 1 exit status',
  ]
}

/** Findings of shellcheck over a folder of scripts: mostly quoting, one script that cannot be parsed, one dangerous rm. */
export function shellcheck(): string {
  const roll = dice(4_102)
  const script = (): string =>
    `scripts/${pick(roll, ['deploy', 'backup', 'db', 'ci', 'release'])}/${pick(roll, VERBS)}-${pick(roll, NOUNS).toLowerCase()}.sh`
  const variable = (): string => pick(roll, ['TARGET', 'host', 'dir', 'release', 'name', 'BUCKET', 'file'])
  const finding = (code: string): string[] => {
    const name = variable()
    if (code === 'SC2034')
      return [
        `${name}_old=$1`,
        '^-------^ SC2034 (warning): variable appears unused. Verify use (or export if used externally).',
      ]
    if (code === 'SC2155')
      return [
        `  export ${name}=$(hostname -f)`,
        '         ^--^ SC2155 (warning): Declare and assign separately to avoid masking return values.',
      ]
    if (code === 'SC2006')
      return [
        `${name}=\`date +%F\``,
        '     ^--------^ SC2006 (style): Use $(...) notation instead of legacy backticks `...`.',
        '',
        'Did you mean:',
        `${name}=$(date +%F)`,
      ]
    return [
      `  cp -r $${name} /srv/${name}`,
      '        ^----^ SC2086 (info): Double quote to prevent globbing and word splitting.',
      '',
      'Did you mean:',
      `  cp -r "$${name}" /srv/${name}`,
    ]
  }
  const findings = lines(78, (i) => {
    if (i === 37)
      return [
        'In scripts/release/rollback.sh line 57:',
        'rm -rf $STAGE_DIR/*',
        '       ^----------^ SC2115 (warning): Use "${var:?}" to ensure this never expands to /* .',
        '       ^--------^ SC2086 (info): Double quote to prevent globbing and word splitting.',
        '',
        '',
      ]
    if (i === 52)
      return [
        'In scripts/db/promote-replica.sh line 23:',
        'if [ "$lag" -gt "$limit" ]; do',
        '^-- SC1009 (info): The mentioned syntax error was in this if expression.',
        "^-- SC1073 (error): Couldn't parse this if expression. Fix to allow more checks.",
        "                            ^-- SC1050 (error): Expected 'then'.",
        '                            ^-- SC1072 (error): Unexpected keyword/token. Fix any mentioned problems and try again.',
        '',
        '',
      ]
    const code = pick(roll, ['SC2086', 'SC2086', 'SC2086', 'SC2034', 'SC2155', 'SC2006'])
    return [`In ${script()} line ${3 + roll(140)}:`, ...finding(code), '', '']
  })
  return `${[
    ...findings,
    'For more information:',
    "  https://www.shellcheck.net/wiki/SC1050 -- Expected 'then'.",
    '  https://www.shellcheck.net/wiki/SC2034 -- appears unused. Verify us...',
    '  https://www.shellcheck.net/wiki/SC2155 -- Declare and assign separately to ...',
  ].join('\n')}\n`
}

/** RuboCop: style offenses that can be corrected, and three that somebody must look at. */
export function rubocop(): string {
  const roll = dice(4_103)
  const file = (): string =>
    `app/${pick(roll, ['models', 'services', 'jobs', 'controllers'])}/${pick(roll, VERBS)}_${pick(roll, NOUNS).toLowerCase()}.rb`
  const dots = Array.from({ length: 231 }, () => pick(roll, ['.', '.', '.', 'C', '.', '.', 'C', '.'])).join('')
  const style = (): string[] => {
    const at = `${file()}:${4 + roll(180)}`
    const noun = pick(roll, NOUNS).toLowerCase()
    if (roll(3) === 0)
      return [
        `${at}:81: C: Layout/LineLength: Line is too long. [${122 + roll(40)}/120]`,
        `    ${noun}.lines.select { |line| line.open? && line.amount > limit }.each { |line| Mailer.remind(line, ${noun}).deliver_later }`,
        '                                                                                ^^^^^^^^^',
      ]
    if (roll(2) === 0)
      return [
        `${at}:16: C: [Correctable] Style/StringLiterals: Prefer single-quoted strings when you don't need string interpolation or special symbols.`,
        `    raise Gone, "${noun} gone"`,
        `                ^^^^^^^^^^^^`,
      ]
    return [
      `${at}:5: C: [Correctable] Style/GuardClause: Use a guard clause (return unless ${noun}.open?) instead of wrapping the code inside a conditional expression.`,
      `    if ${noun}.open?`,
      '    ^^',
    ]
  }
  const offenses = lines(96, (i) => {
    if (i === 31)
      return [
        'app/services/settle_refund.rb:48:5: W: [Correctable] Lint/Debugger: Remove debugger entry point binding.irb.',
        '    binding.irb if refund.amount.zero?',
        '    ^^^^^^^^^^^',
      ]
    if (i === 50)
      return [
        'app/services/tariff_formula.rb:22:7: C: Security/Eval: The use of eval is a serious security risk.',
        "      eval(rule.formula.gsub('qty', quantity.to_s))",
        '      ^^^^',
      ]
    if (i === 66)
      return [
        'app/jobs/nightly_close_job.rb:73:1: E: Lint/Syntax: unexpected token $end',
        '(Using Ruby 3.3 parser; configure using TargetRubyVersion parameter, under AllCops)',
      ]
    return style()
  })
  return `Inspecting 231 files\n${dots}\n\nOffenses:\n\n${offenses.join('\n')}\n\n231 files inspected, 96 offenses detected, 58 offenses autocorrectable\n`
}

/** A Next.js build with a page that was too slow once, and a route that is ten times as large as the others. */
export function nextBuild(): string {
  const roll = dice(4_104)
  const words = [
    'orders',
    'account',
    'guides',
    'search',
    'stores',
    'gifts',
    'brands',
    'help',
    'returns',
    'press',
  ] as const
  const warnings = lines(26, (i) => {
    const file = `./app/${pick(roll, words)}/${pick(roll, NOUNS).toLowerCase()}-${i}.tsx`
    if (i === 14)
      return [
        './app/checkout/pay-button.tsx',
        "88:6  Warning: React Hook useEffect has a missing dependency: 'basketId'. Either include it or remove the dependency array.  react-hooks/exhaustive-deps",
        '',
      ]
    return [
      file,
      `${10 + roll(200)}:${3 + roll(20)}  Warning: Using \`<img>\` could result in slower LCP and higher bandwidth. Consider using \`<Image />\` from \`next/image\`.  @next/next/no-img-element`,
      '',
    ]
  })
  const routes = lines(104, (i) => {
    const mark = pick(roll, ['○', '●', 'ƒ'])
    if (i === 55) return '├ ƒ /checkout/designer                         1.08 MB        1.19 MB'
    const route = `/${pick(roll, words)}/${pick(roll, VERBS)}-${i}${roll(4) === 0 ? '/[slug]' : ''}`
    const size = roll(3) === 0 ? `${140 + roll(800)} B` : `${1 + roll(9)}.${roll(10)}${roll(10)} kB`
    return `├ ${mark} ${route.padEnd(42)} ${size.padEnd(14)} ${106 + roll(24)} kB`
  })
  return `${[
    '   ▲ Next.js 15.1.3',
    '   - Environments: .env.production, .env',
    '',
    '   Creating an optimized production build ...',
    ' ✓ Compiled successfully',
    '   Linting and checking validity of types ...',
    '',
    ...warnings,
    'info  - Need to disable some ESLint rules? Learn more here: https://nextjs.org/docs/app/api-reference/config/eslint#disabling-rules',
    '   Collecting page data ...',
    ...lines(21, (i) => `   Generating static pages (${i * 20}/412) `),
    ' ⚠ Restarted static page generation for /guides/customs-forms because it took more than 60 seconds',
    ' ✓ Generating static pages (412/412)',
    '   Finalizing page optimization ...',
    '   Collecting build traces ...',
    '',
    'Route (app)                                      Size           First Load JS',
    '┌ ○ /                                          4.91 kB        112 kB',
    ...routes,
    `└ ○ /sitemap.xml                               0 B            0 B`,
    '+ First Load JS shared by all                  105 kB',
    `  ├ chunks/${two(roll(9_999), 4)}-${hex(roll, 16)}.js        52.1 kB`,
    `  └ other shared chunks (total)                2.11 kB`,
    '',
    '○  (Static)   prerendered as static content',
    '●  (SSG)      prerendered as static HTML (uses generateStaticParams)',
    'ƒ  (Dynamic)  server-rendered on demand',
  ].join('\n')}\n`
}
