// All fuzz targets, in the order in which they run.
import { admissions } from './admit.ts'
import { captures } from './capture.ts'
import { compressions } from './compress.ts'
import { dialects } from './dialects.ts'
import { forms } from './forms.ts'
import { numbers } from './number.ts'
import { optionObjects } from './options.ts'
import { pasted } from './pasted.ts'
import { paths } from './paths.ts'
import { policies } from './policy.ts'
import { ran } from './ran.ts'
import { repairs } from './repair.ts'
import { router } from './router.ts'
import { shellReader } from './shell.ts'
import { hasTmux, screens } from './screen.ts'
import { shown } from './shown.ts'
import { streams } from './streams.ts'
import type { Target } from './target.ts'
import { truncations } from './truncated.ts'

export const targets: readonly Target[] = [
  paths,
  repairs,
  admissions,
  truncations,
  policies,
  forms,
  shellReader,
  captures,
  numbers,
  optionObjects,
  shown,
  pasted,
  streams,
  compressions,
  router,
  dialects,
  ran,
  ...(hasTmux ? [screens] : []),
]
