// Outputs that real programs printed, as files in `outputs/`: for the tests and the benches of the content router. How each was made
// stands in its README. Generated ones of any size are in corpus.ts.
import { readFileSync } from 'node:fs'
import type { ContentHint, ContentKind } from '../../src/index.ts'
import type { Sample } from './corpus.ts'

/** `npm test` and `npm run bench` both start in the folder of the repository. */
const FOLDER = 'test/context/outputs'

function output(file: string, kind: ContentKind, hint: ContentHint): Sample {
  return {
    id: `real_${file.replace(/\W/g, '_')}`,
    name: file,
    kind,
    hint,
    text: readFileSync(`${FOLDER}/${file}`, 'utf8'),
  }
}

export const OUTPUTS: readonly Sample[] = [
  output('cargo-build.txt', 'log', { command: 'cargo build --workspace' }),
  output('cargo-messages.jsonl', 'json', { path: 'cargo-messages.jsonl' }),
  output('cargo-metadata.json', 'json', {}),
  output('cargo-test.txt', 'log', { command: 'cargo test --no-fail-fast' }),
  output('dpkg-log.txt', 'log', {}),
  output('git-diff.txt', 'diff', { command: 'git diff HEAD~6' }),
  output('git-grep.txt', 'search', { command: "git grep -n 'readonly'", query: 'readonly' }),
  output('git-log-stat.txt', 'log', { command: 'git log --stat -12' }),
  output('git-show.txt', 'diff', { command: 'git show' }),
  output('kubectl-describe.txt', 'log', { command: 'kubectl describe pod' }),
  output('kubectl-events.txt', 'log', { command: 'kubectl get events' }),
  output('kubectl-pods.json', 'json', {}),
  output('kubectl-pods.txt', 'log', { command: 'kubectl get pods' }),
  output('mdbook.html', 'html', {}),
  output('npm-install.txt', 'log', { command: 'npm install --loglevel http' }),
  output('npm-ls.json', 'json', {}),
  output('npm-ls.txt', 'log', { command: 'npm ls --all' }),
  output('npm-registry.json', 'json', {}),
  output('pydoc.html', 'html', {}),
  output('pytest-failures.txt', 'log', { command: 'pytest' }),
  output('pytest-v.txt', 'log', { command: 'pytest -v' }),
  output('rg.txt', 'search', { tool: 'grep', query: 'sqlite' }),
  output('tsc-pretty.txt', 'log', { command: 'npx tsc --noEmit --pretty' }),
  output('tsc.txt', 'log', { command: 'npx tsc --noEmit' }),
  output('vitest.txt', 'log', { command: 'npx vitest run --reporter=verbose' }),
]
