// `terret create NAME`: copies a template of this package into a new folder, and prints the commands that come next. It uses no
// network; `--install` starts npm, which does.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nearest } from '../../options.ts'
import { VERSION } from '../../version.ts'
import { clean } from '../../view/clean.ts'
import type { CommandArgs } from '../args.ts'
import { CliError, EXIT } from '../exit.ts'
import { pathToType, print, printJson } from '../present/print.ts'
import { fileErrorCode, isOutOfRoom } from '../state/plain-file.ts'

const USUAL = 'agent'
/** Also the name of the package: npm refuses others. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/
/** npm leaves a file of the name `.gitignore` out of a package, so a template has it without the dot. */
const IGNORED = 'gitignore'

type Manifest = {
  readonly description: string
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
}

export async function createCommand(call: CommandArgs): Promise<number> {
  const [name = ''] = call.words
  const source = findTemplate(call.text('template') ?? USUAL)
  checkName(name)
  const manifest = copyTemplate(source, name)
  const isInstalled = call.is('install')
  if (isInstalled) install(name)
  const next = [`cd ${pathToType(name)}`, ...(isInstalled ? [] : ['npm install']), 'npm test', 'npm start']
  if (call.is('json')) printJson({ folder: join(process.cwd(), name), template: call.text('template') ?? USUAL, next })
  else print(`Made ${name}: ${manifest.description}. Next:`, ...next.map((line) => `  ${line}`))
  return EXIT.ok
}

function findTemplate(name: string): string {
  const folder = templatesFolder()
  const names = readdirSync(folder).toSorted()
  if (names.includes(name)) return join(folder, name)
  const near = nearest(name, names)
  const hint = near === null ? `There are: ${names.join(', ')}.` : `Did you mean ${near}?`
  throw new CliError(EXIT.usage, `There is no template "${name}". ${hint}`)
}

/** Above this module. The build puts this module into a chunk, which lies elsewhere than its source. */
function templatesFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'templates', USUAL, 'package.json'))) {
    if (folder === dirname(folder))
      throw new CliError(EXIT.missing, 'The templates are not beside this program. Install the package terret anew.')
    folder = dirname(folder)
  }
  return join(folder, 'templates')
}

function checkName(name: string): void {
  if (!NAME.test(name))
    throw new CliError(
      EXIT.usage,
      `"${name}" cannot be the name of a package. Use 1 to 64 small letters, digits, "-", "_" and ".", and begin with a letter or a digit.`,
    )
  if (name === 'terret' || name === 'node_modules')
    throw new CliError(EXIT.usage, `"${name}" is a name that npm needs itself. Choose another.`)
  const there = statSync(name, { throwIfNoEntry: false })
  if (there && !there.isDirectory())
    throw new CliError(EXIT.usage, `${name} is a file. Choose another name, or move it away.`)
  if (there && readdirSync(name).length > 0)
    throw new CliError(EXIT.usage, `The folder ${name} is not empty, and was left as it is. Choose another name.`)
}

/** Leaves nothing behind if the disk fills up: a second try would find a folder that is not empty. */
function copyTemplate(source: string, name: string): Manifest {
  const wasThere = existsSync(name)
  try {
    cpSync(source, name, { recursive: true })
    if (existsSync(join(name, IGNORED))) renameSync(join(name, IGNORED), join(name, `.${IGNORED}`))
    const path = join(name, 'package.json')
    // Sound: the file is one of this package, and a test reads each of them.
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest
    const dependencies = { ...manifest.dependencies, terret: `^${VERSION}` }
    writeFileSync(path, `${JSON.stringify({ ...manifest, name, dependencies }, null, 2)}\n`)
    return manifest
  } catch (error) {
    for (const each of existsSync(name) ? readdirSync(name) : []) rmSync(join(name, each), { recursive: true })
    if (!wasThere) rmSync(name, { recursive: true, force: true })
    if (isOutOfRoom(error))
      throw new CliError(
        EXIT.store,
        `The disk is full, and ${name} was not made. Make room, and try again. (disk_full)`,
      )
    throw new CliError(EXIT.usage, `${name} cannot be written here (${fileErrorCode(error)}). Use another folder.`)
  }
}

function install(name: string): void {
  // On standard error, since standard output has the answer of this command.
  const { status, error } = spawnSync('npm', ['install'], {
    cwd: name,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status === 0) return
  const why = error === undefined ? '' : ` (${clean(fileErrorCode(error))})`
  throw new CliError(
    EXIT.failed,
    `${name} was made, and npm could not install what it needs${why}. Run \`npm install\` in it.`,
  )
}
