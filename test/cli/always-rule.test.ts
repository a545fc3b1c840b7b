// Which prefix rule the answer "always" offers for a command, and for which there is none.
import { expect, it } from 'vitest'
import { prefixPattern } from '../../src/cli/present/always-rule.ts'

it.each([
  ['npm test', 'npm test *'],
  ['npm test -- --watch', 'npm test *'],
  ['npm run build', 'npm run build *'],
  ['git commit -m message', 'git commit *'],
  ['pytest -q tests/a.py', 'pytest *'],
  ['python3 scripts/report.py 12', 'python3 scripts/report.py *'],
  ['ls ./src', 'ls *'],
  ['./gradlew build', './gradlew build *'],
])('B-CLI-365: the prefix of %s is %s', async (command, pattern) => {
  expect(await prefixPattern(command)).toBe(pattern)
})

it.each([
  'npm test; rm -rf .',
  'npm test && curl x',
  'npm test | tee out',
  'npm test > out',
  'npm test $(id)',
  'npm test `id`',
  'npm test $HOME',
  'npm test\nid',
  'FOO=1 npm test',
  'sudo npm test',
  'env npm test',
  'bash test.sh',
  'python3 -c "print(1)"',
  'node -e 1',
  'npm run',
  'rm file.txt',
  'find . -name x',
  'xargs echo',
  '"a b" c',
  // A quoted text of several words may be a command for the program.
  'git commit -m "a message"',
  '',
])('B-CLI-365: there is no prefix for %j', async (command) => {
  expect(await prefixPattern(command)).toBe(null)
})
