// Every row of the threat table that is played, by the surface that it comes at.
import type { Row, Surface } from './case.ts'
import { consent, padding } from './approvals.ts'
import { callers } from './callers.ts'
import { bombs } from './bombs.ts'
import { brokenWalls } from './broken-walls.ts'
import { daemons } from './daemons.ts'
import { decisions, remembered } from './decisions.ts'
import { deciders, edited } from './edits.ts'
import { breakouts } from './escape.ts'
import { families } from './families.ts'
import { fetches } from './fetch.ts'
import { repositories } from './git.ts'
import { ids } from './ids.ts'
import { importedOptions } from './import-options.ts'
import { plantedGit } from './git-planted.ts'
import { gitPrograms, gitSettings } from './git-settings.ts'
import { homes } from './home.ts'
import { elsewhere, imports } from './imports.ts'
import { allowLists, names } from './injection.ts'
import { liveSecrets } from './live-secrets.ts'
import { collisions, measureless, programs, rugPulls, silentChanges } from './mcp.ts'
import { egress, hostSockets, labels } from './network.ts'
import { archives, oddFiles } from './odd-files.ts'
import { patterns } from './patterns.ts'
import { owners } from './owners.ts'
import { followed, found, obeyed, turned } from './links.ts'
import { climbing, linked, newborn } from './paths.ts'
import { pollution } from './pollution.ts'
import { foreignModels, narrowedRuns } from './powers.ts'
import { foreignSessions } from './programs.ts'
import { plantedFiles, protectedFiles } from './protected.ts'
import { races } from './race.ts'
import { sinksOfSecrets } from './redaction.ts'
import { remotes } from './remote.ts'
import { hidden, repeated } from './repeated.ts'
import { broughtFiles } from './scenario-import.ts'
import { clones } from './scenario-repository.ts'
import { coUsers } from './scenario-co-user.ts'
import { cells } from './scenario-scripts.ts'
import { pages } from './scenario-page.ts'
import { providers } from './scenario-provider.ts'
import { shops } from './scenario-mcp.ts'
import { profiles, secrets } from './secrets.ts'
import { pastAllowRules, pastDenyRules } from './shell-rules.ts'
import { stores } from './store.ts'
import { forged, steered } from './triggers.ts'

export const SURFACES: readonly Surface[] = [
  { name: 'paths', rows: [climbing, linked, newborn, races, oddFiles, archives, turned, followed, found] },
  { name: 'obeyed', rows: [protectedFiles, plantedFiles, obeyed] },
  { name: 'git', rows: [repositories, gitSettings, gitPrograms, plantedGit, clones] },
  { name: 'shell', rows: [names, allowLists, pastAllowRules, pastDenyRules, patterns] },
  { name: 'sandbox', rows: [brokenWalls, daemons, bombs, breakouts, homes] },
  { name: 'network', rows: [egress, labels, hostSockets] },
  { name: 'web', rows: [fetches, pages] },
  { name: 'secrets', rows: [secrets, profiles, sinksOfSecrets, liveSecrets] },
  { name: 'approvals', rows: [consent, decisions, padding, remembered, repeated, edited, deciders] },
  { name: 'mcp', rows: [rugPulls, programs, remotes, measureless, collisions, silentChanges, shops] },
  { name: 'store', rows: [stores, pollution] },
  { name: 'terminal', rows: [hidden, ids] },
  { name: 'imports', rows: [imports, elsewhere, importedOptions, broughtFiles] },
  { name: 'provider', rows: [foreignModels, providers] },
  { name: 'sessions', rows: [narrowedRuns, families, foreignSessions, owners] },
  { name: 'server', rows: [callers, coUsers] },
  { name: 'triggers', rows: [steered, forged] },
  { name: 'scripts', rows: [cells] },
]

export const ROWS: readonly Row[] = SURFACES.flatMap(({ rows }) => rows)
