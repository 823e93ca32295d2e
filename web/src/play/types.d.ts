/** The text of a source file, put in by build.mjs. */
declare module "source:*" {
  const text: string;
  export default text;
}
