// Where Chromium is on this machine; undefined if it is not there. `TERRET_CHROMIUM` names another one.
import { existsSync } from 'node:fs'

const places = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome']
export const chromiumPath = [process.env['TERRET_CHROMIUM'] ?? '', ...places].find(
  (path) => path !== '' && existsSync(path),
)
