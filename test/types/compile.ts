// Compiles a user's program against the built types, for types.test.ts and types.long.test.ts.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'

export const root = join(import.meta.dirname, '..', '..')
export const NODENEXT = ['--module', 'nodenext']
export const BUNDLER = ['--module', 'esnext', '--moduleResolution', 'bundler']

/** Compiles the program against dist/, as a user would, and returns what the compiler says and the declarations that it wrote. */
export async function compiled(
  compiler: 'typescript' | 'typescript-5.9',
  flags: readonly string[],
  change = (text: string): string => text,
) {
  const parent = join(root, '.build', 'types')
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, 'run-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const text = readFileSync(join(root, 'test', 'types', 'program.ts'), 'utf8')
  writeFileSync(join(folder, 'program.ts'), change(text.replace('../../src/index.ts', 'terret')))
  const strict = '--strict --exactOptionalPropertyTypes --target es2022 --lib es2023 --types node --skipLibCheck'
  const emitted = [
    '--declaration',
    '--emitDeclarationOnly',
    '--rootDir',
    root,
    '--outDir',
    folder,
    join(folder, 'program.ts'),
  ]
  // Only the newer one reads a tsconfig.json beside named files.
  const own = compiler === 'typescript' ? ['--ignoreConfig'] : []
  const bin = join(root, 'node_modules', compiler, 'bin', 'tsc')
  const said = await promisify(execFile)(process.execPath, [
    bin,
    ...strict.split(' '),
    ...own,
    ...flags,
    ...emitted,
  ]).then(
    ({ stdout }) => stdout,
    (error: { readonly stdout: string }) => error.stdout,
  )
  const declarations = join(folder, relative(root, folder), 'program.d.ts')
  return { said, declarations: existsSync(declarations) ? readFileSync(declarations, 'utf8') : '' }
}
