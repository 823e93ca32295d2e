import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"], testTimeout: 20_000,
    expect: { poll: { timeout: 15_000 } }, // a busy machine takes far longer than the usual second
  },
});
