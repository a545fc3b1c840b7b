// Every row of the threat table that is played, in its order.
import type { Row } from './case.ts'
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
import { profiles, secrets } from './secrets.ts'
import { pastAllowRules, pastDenyRules } from './shell-rules.ts'
import { stores } from './store.ts'
import { forged, steered } from './triggers.ts'

/** In the order of the threat table. */
export const ROWS: readonly Row[] = [
  climbing,
  linked,
  newborn,
  races,
  oddFiles,
  archives,
  protectedFiles,
  repositories,
  names,
  allowLists,
  brokenWalls,
  egress,
  fetches,
  labels,
  secrets,
  daemons,
  bombs,
  breakouts,
  consent,
  decisions,
  padding,
  remembered,
  rugPulls,
  programs,
  remotes,
  measureless,
  stores,
  sinksOfSecrets,
  patterns,
  pollution,
  imports,
  elsewhere,
  repeated,
  hidden,
  collisions,
  silentChanges,
  hostSockets,
  plantedFiles,
  profiles,
  owners,
  ids,
  importedOptions,
  narrowedRuns,
  foreignModels,
  families,
  gitSettings,
  gitPrograms,
  homes,
  plantedGit,
  turned,
  followed,
  found,
  obeyed,
  pastAllowRules,
  pastDenyRules,
  liveSecrets,
  foreignSessions,
  callers,
  edited,
  deciders,
  steered,
  forged,
]
