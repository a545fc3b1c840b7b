// Generators of what package managers and git print, for the outputs in fresh.ts.
import { dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

const MAKERS = ['symfony', 'doctrine', 'league', 'monolog', 'psr', 'laminas', 'phpunit', 'sebastian', 'twig'] as const

/** composer install: one package goes back a major version, one patch does not apply, and the last script fails. */
export function composer(): string {
  const roll = dice(4_301)
  const version = (): string => `v${1 + roll(7)}.${roll(12)}.${roll(20)}`
  const packages = Array.from(
    { length: 150 },
    (_, i) =>
      `${pick(roll, MAKERS)}/${pick(roll, NOUNS).toLowerCase()}-${pick(roll, ['bundle', 'bridge', 'contracts', 'client'])}${i % 9 === 0 ? '-extra' : ''}`,
  )
  const operations = packages.flatMap((name, i) => {
    if (i === 61) return '  - Downgrading doctrine/dbal (4.1.1 => 3.8.6): Extracting archive'
    if (i === 84)
      return [
        '  - Installing shopware/pdf-writer (2.3.0): Extracting archive',
        '  - Applying patches for shopware/pdf-writer',
        '    patches/pdf-writer-euro-sign.patch (Euro sign in the footer)',
        '   Could not apply patch! Skipping. The error was: Cannot apply patch patches/pdf-writer-euro-sign.patch',
      ]
    if (i === 102) return '  - Installing acme/fiscal-codes (dev-main 41bd0c7): Cloning 41bd0c7 from cache'
    if (roll(6) === 0) return `  - Upgrading ${name} (${version()} => ${version()}): Extracting archive`
    return `  - Installing ${name} (${version()}): Extracting archive`
  })
  return `${[
    'Installing dependencies from lock file (including require-dev)',
    'Verifying lock file contents can be installed on current platform.',
    'Gathering patches for root package.',
    'Package operations: 124 installs, 26 updates, 0 removals',
    ...packages.slice(0, 60).map((name) => `  - Downloading ${name} (${version()})`),
    ...operations,
    'Package sensio/framework-extra-bundle is abandoned, you should avoid using it. Use Symfony instead.',
    'Generating optimized autoload files',
    '119 packages you are using are looking for funding.',
    'Use the `composer fund` command to find out more!',
    '> @php bin/console cache:clear --no-warmup',
    'In CheckExceptionOnInvalidReferenceBehaviorPass.php line 88:',
    '  The service "shop.tax.rounding" has a dependency on a non-existent service "doctrine.dbal.legacy_connection".',
    'Script @php bin/console cache:clear --no-warmup handling the post-install-cmd event returned with error code 255',
  ].join('\n')}\n`
}

/** The dependency tree of a Maven project with conflicts that were resolved to an old version, and a snapshot. */
export function dependencyTree(): string {
  const roll = dice(4_302)
  const groups = [
    'org.springframework',
    'io.netty',
    'org.slf4j',
    'com.google.guava',
    'io.micrometer',
    'org.hibernate.orm',
    'jakarta.annotation',
  ] as const
  const artifact = (i: number): string =>
    `${pick(roll, groups)}:${pick(roll, NOUNS).toLowerCase()}-${pick(roll, ['core', 'api', 'support', 'codec', 'commons'])}-${i}:jar:${2 + roll(5)}.${roll(20)}.${roll(9)}`
  const modules = ['pricing', 'ledger', 'web'] as const
  const tree = modules.flatMap((module, m) => [
    '[INFO] ',
    `[INFO] ----------------------< com.acme.shop:shop-${module} >----------------------`,
    `[INFO] Building shop-${module} 7.4.0                                          [${m + 2}/4]`,
    '[INFO] --------------------------------[ jar ]---------------------------------',
    '[INFO] ',
    `[INFO] --- dependency:3.6.1:tree (default-cli) @ shop-${module} ---`,
    `[INFO] com.acme.shop:shop-${module}:jar:7.4.0`,
    ...lines(76, (i) => {
      if (m === 1 && i === 21)
        return '[INFO] |  |  +- (com.fasterxml.jackson.core:jackson-databind:jar:2.17.2:compile - omitted for conflict with 2.9.8)'
      if (m === 1 && i === 22) return '[INFO] |  |  \\- com.h2database:h2:jar:2.3.230:compile'
      if (m === 1 && i === 48) return '[INFO] +- com.acme.tax:tax-tables:jar:5.1.0-20261113.171204-9:compile'
      if (m === 2 && i === 11) return '[INFO] |  +- com.acme.hsm:hsm-bridge:jar:1.0:system'
      const depth = 1 + roll(3)
      const branch = `${'|  '.repeat(depth - 1)}${roll(4) === 0 ? '\\-' : '+-'} `
      const name = artifact(i)
      if (depth > 1 && roll(4) === 0) return `[INFO] ${branch}(${name}:compile - omitted for duplicate)`
      return `[INFO] ${branch}${name}:${pick(roll, ['compile', 'compile', 'runtime', 'test'])}`
    }),
  ])
  return `${[
    '[INFO] Scanning for projects...',
    '[INFO] Reactor Build Order:',
    ...tree,
    '[INFO] ------------------------------------------------------------------------',
    '[INFO] Reactor Summary for shop 7.4.0:',
    '[INFO] ',
    '[INFO] shop-pricing ....................................... SUCCESS [  1.204 s]',
    '[INFO] shop-ledger ........................................ SUCCESS [  0.911 s]',
    '[INFO] shop-web ........................................... SUCCESS [  1.377 s]',
    '[INFO] shop-labels ........................................ FAILURE [  2.018 s]',
    '[INFO] ------------------------------------------------------------------------',
    '[INFO] BUILD FAILURE',
    '[INFO] Total time:  6.418 s',
    '[ERROR] Failed to execute goal on project shop-labels: Could not collect dependencies for project com.acme.shop:shop-labels:jar:7.4.0: Could not find artifact com.acme.print:label-fonts:pom:2.2 in nexus (https://mvn.example/repository/maven-public/) -> [Help 1]',
  ].join('\n')}\n`
}

/** git blame of a Python file: code of years ago, one line of last week in the middle, and one that is not committed. */
export function blame(): string {
  const roll = dice(4_303)
  const people = ['Ana Ribeiro', 'Jonas Weber', 'Mei Tanaka', 'Tom Okafor'] as const
  const commits = Array.from({ length: 14 }, () => ({
    id: hex(roll, 11),
    who: pick(roll, people),
    when: `202${2 + roll(3)}-${two(1 + roll(12))}-${two(1 + roll(28))} ${two(8 + roll(10))}:${two(roll(60))}:${two(roll(60))} +0100`,
  }))
  let number = 0
  let commit = commits[0]
  const row = (code: string, id?: string, who?: string, when?: string): string => {
    number += 1
    return `${id ?? commit?.id ?? ''} (${(who ?? commit?.who ?? '').padEnd(17)} ${when ?? commit?.when ?? ''} ${String(number).padStart(3)}) ${code}`
  }
  const functions = lines(30, (i) => {
    commit = pick(roll, [commits[0], ...commits])
    const noun = pick(roll, NOUNS).toLowerCase()
    const verb = pick(roll, VERBS)
    const start = [
      row(`def ${verb}_${noun}_${i}(${noun}, session, limit=${10 + roll(90)}):`),
      row(`    """${verb} one ${noun} and say how many lines it had."""`),
    ]
    const middle =
      i === 15
        ? row(
            '    if session.country in ("CH", "GB"): return 0',
            'c41f09ab27e',
            'Piotr Lewandowski',
            '2026-11-11 23:48:02 +0100',
          )
        : row(`    rows = session.query(${noun}.table).limit(limit)`)
    commit = roll(3) === 0 ? pick(roll, [commits[1], ...commits]) : commit
    const test =
      i === 21
        ? row('    time.sleep(4)', '00000000000', 'Not Committed Yet', '2026-11-16 09:12:44 +0100')
        : row(`    total = sum(row.amount for row in rows if row.${pick(roll, ['open', 'paid', 'due'])})`)
    return [
      ...start,
      middle,
      test,
      row(`    session.log("${verb}", ${noun}.id, total)`),
      row('    return total'),
      row(''),
      row(''),
    ]
  })
  return `${functions.join('\n')}\n`
}

/** git bisect run with the test output of each step; one step could not be built and was left out. */
export function bisect(): string {
  const roll = dice(4_304)
  const subjects = [
    'docs: the ledger in one page',
    'web: smaller icons',
    'pricing: one place for the currency',
    'ci: keep the cache',
    'stock: name the columns',
    'ledger: read in pages',
    'basket: typed events',
    'web: no more moment',
  ] as const
  const left = [126, 63, 31, 15, 8, 4, 2, 1, 0] as const
  const steps = left.flatMap((count, i) => {
    const commit = `[${hex(roll, 40)}] ${subjects[i % subjects.length] ?? ''}`
    const head =
      i === 0
        ? []
        : [`Bisecting: ${count} revisions left to test after this (roughly ${Math.max(0, 8 - i)} steps)`, commit]
    const tests = lines(
      24,
      (t) => `ok ${t + 1} - ${pick(roll, VERBS)} ${pick(roll, NOUNS).toLowerCase()} ${t} (${1 + roll(40)} ms)`,
    )
    const bad = i % 3 === 1 || i === 8
    if (i === 4)
      return [
        ...head,
        "running  './check.sh'",
        'npm error code ERESOLVE',
        'npm error ERESOLVE could not resolve: vite@6.0.1 wants node >=22',
        'check.sh: cannot build this one, skipping (exit 125)',
      ]
    return [
      ...head,
      "running  './check.sh'",
      ...tests,
      ...(bad
        ? ['not ok 25 - price of a Swiss basket', `#   expected 41.90, got 38.${80 + roll(9)}`]
        : ['ok 25 - price of a Swiss basket (3 ms)']),
    ]
  })
  return `${[
    'status: waiting for both good and bad commits',
    'status: waiting for bad commit, 1 good commit known',
    ...steps,
    '9d27c1e0b5a84f3c6ee1f0a7b2d4c8e913f5a6b0 is the first bad commit',
    'commit 9d27c1e0b5a84f3c6ee1f0a7b2d4c8e913f5a6b0',
    'Author: Jonas Weber <jonas@shop.example>',
    'Date:   Thu Nov 12 17:55:31 2026 +0100',
    '',
    '    pricing: keep the tariff per country, not per zone',
    '',
    ' src/pricing/tariff-cache.ts      | 18 +++++++-----------',
    ' src/pricing/tariff-cache.test.ts |  4 ++--',
    ' 2 files changed, 9 insertions(+), 13 deletions(-)',
    'bisect found first bad commit',
  ].join('\n')}\n`
}
