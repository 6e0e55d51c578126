"""Peak rates of GPUs: dense rates by precision and memory bandwidth, by the name that CUDA reports.

The figures are NVIDIA's, without structured sparsity (where only the sparse rate is given it is halved), at boost
clock. On GeForce cards FP16, BF16 and FP8 are the rates with FP32 accumulation, which is what PyTorch asks for. A GPU
that is not in the table, a MIG slice of one that is, or a rate of which no source was found is unknown.

A source names the document in which NVIDIA gives the figures. They were read where others quote it: in tables that cite
it (PyTorch Inductor, Lightning, Composer, torchtitan, ml-engineering), transcripts and resellers' copies. Where boost
clock and number of SMs are known, the rates also follow from them (tests/names/test_ceilings.py).
"""

from __future__ import annotations

from dataclasses import dataclass

TERA = 1e12
GIGA = 1e9
_TF32_PRODUCTS_OF_3XTF32 = 3


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Peak rates of one GPU in TFLOP/s (``int8`` in TOP/s), None where unknown or absent; ``bandwidth`` in GB/s.

    ``fp64`` and ``fp32`` are those of the CUDA cores, all others those of the Tensor Cores.
    """

    source: str
    bandwidth: float
    fp64: float | None = None
    fp64_tensor: float | None = None
    fp32: float | None = None
    tf32: float | None = None
    fp16: float | None = None
    bf16: float | None = None
    fp8: float | None = None
    int8: float | None = None

    @property
    def bytes_per_second(self) -> float:
        """Memory bandwidth in bytes per second."""
        return self.bandwidth * GIGA

    def flops_per_second(self, precision: str, tensor_cores: bool) -> float | None:
        """Peak rate in FLOP/s on the Tensor Cores or on the CUDA cores; None where unknown.

        Args:
            precision: "fp64", "fp32", "tf32", "3xtf32", "fp16", "bf16", "fp8", "mxfp8" (as "fp8"), "int8".
                Those with 4 bits are not in the table.
            tensor_cores: whether the work runs on them. The CUDA cores' FP16, BF16 and INT8 rates are not in the table.
        """
        if tensor_cores:
            rates = {
                "fp64": self.fp64_tensor,
                "tf32": self.tf32,
                "3xtf32": None if self.tf32 is None else self.tf32 / _TF32_PRODUCTS_OF_3XTF32,
                "fp16": self.fp16,
                "bf16": self.bf16,
                "fp8": self.fp8,
                "mxfp8": self.fp8,
                "int8": self.int8,
            }
        else:
            rates = {"fp64": self.fp64, "fp32": self.fp32}
        rate = rates.get(precision)
        return None if rate is None else rate * TERA


def ceilings_of(gpu: str) -> Ceilings | None:
    """The ceilings of a GPU by the name that CUDA reports, such as "NVIDIA A100-SXM4-80GB"; None where unknown."""
    # Drivers before R465 did not begin the name with the vendor's.
    return _BY_NAME.get(gpu.removeprefix("NVIDIA ").strip())


def _volta(source: str, bandwidth: float, fp64: float, fp32: float, fp16: float) -> Ceilings:
    return Ceilings(source, bandwidth, fp64=fp64, fp32=fp32, fp16=fp16)


def _turing(source: str, bandwidth: float, fp32: float, fp16: float, int8: float) -> Ceilings:
    return Ceilings(source, bandwidth, fp32=fp32, fp16=fp16, int8=int8)


def _ampere(source: str, bandwidth: float, fp32: float, tf32: float, fp16: float, int8: float | None) -> Ceilings:
    return Ceilings(source, bandwidth, fp32=fp32, tf32=tf32, fp16=fp16, bf16=fp16, int8=int8)


def _ada(source: str, bandwidth: float, fp32: float, tf32: float, fp16: float, fp8: float, int8: float) -> Ceilings:
    """Ada, and Blackwell's GeForce and workstation cards."""
    return Ceilings(source, bandwidth, fp32=fp32, tf32=tf32, fp16=fp16, bf16=fp16, fp8=fp8, int8=int8)


def _data_center(
    source: str,
    bandwidth: float,
    *,
    fp64: float,
    fp64_tensor: float,
    fp32: float | None,
    tf32: float,
    fp16: float,
    int8: float | None,
    fp8: float | None = None,
) -> Ceilings:
    return Ceilings(source, bandwidth, fp64, fp64_tensor, fp32, tf32, fp16, fp16, fp8, int8)


_P100_SOURCE = "NVIDIA Tesla P100 data sheet (2016)"
_V100_SOURCE = "NVIDIA V100 Tensor Core GPU data sheet (January 2020)"
_DGX_STATION = (
    "as V100 NVLink (NVIDIA V100 data sheet): NVIDIA's white paper on the DGX Station gives it no rates of its own"
)
_TURING_SOURCE = "NVIDIA Turing GPU Architecture whitepaper (WP-09183), Founders Edition"
_TURING_SMS = "GeForce RTX 20 Founders Edition (SMs, boost clock) at the Turing whitepaper's rates per SM"
_A100_SOURCE = "NVIDIA A100 Tensor Core GPU data sheet (June 2021)"
_A100_FIRST = "NVIDIA A100 Tensor Core GPU Architecture whitepaper (2020)"
_GA102 = "NVIDIA Ampere GA102 GPU Architecture whitepaper v2"
_GEFORCE_30 = "GeForce RTX 30 specifications (SMs, boost clock) at the GA102 whitepaper's rates per SM"
_RTX_A = "specifications (SMs, boost clock) at the rates per SM that the GA102 whitepaper gives RTX A6000"
_ADA_SOURCE = "NVIDIA Ada GPU Architecture whitepaper v2"
_GEFORCE_40 = "GeForce RTX 40 specifications (SMs, boost clock) at the Ada whitepaper's rates per SM"
_BLACKWELL_RTX = "NVIDIA RTX Blackwell GPU Architecture whitepaper v1.1"
_GEFORCE_50 = "GeForce RTX 50 specifications (SMs, boost clock) at the RTX Blackwell whitepaper's rates per SM"
_BLACKWELL_PRO = "NVIDIA RTX Blackwell PRO GPU Architecture whitepaper v1.0"
_H100_SOURCE = "NVIDIA H100 Tensor Core GPU data sheet"
_H200_SOURCE = "NVIDIA H200 Tensor Core GPU data sheet"
_GH200_SOURCE = "NVIDIA GH200 Grace Hopper Superchip data sheet"

_H100_SXM_RATES = {"fp64": 34, "fp64_tensor": 67, "fp32": 67, "tf32": 494.5, "fp16": 989.5, "int8": 1979, "fp8": 1979}
_NVL_RATES = {"fp64": 30, "fp64_tensor": 60, "fp32": 60, "tf32": 417.5, "fp16": 835.5, "int8": 1670.5, "fp8": 1670.5}
_A100_RATES = {"fp64": 9.7, "fp64_tensor": 19.5, "fp32": 19.5, "tf32": 156, "fp16": 312, "int8": 624}

_V100_SXM2 = _volta(_V100_SOURCE, 900, 7.8, 15.7, 125)
_V100_PCIE = _volta(_V100_SOURCE, 900, 7.0, 14.0, 112)
_V100_DGXS = _volta(_DGX_STATION, 900, 7.8, 15.7, 125)
_QUADRO_RTX_6000 = _turing(
    "NVIDIA Turing GPU Architecture whitepaper (WP-09183), Quadro RTX 6000", 672, 16.3, 130.5, 261
)
_A100_40 = _data_center(_A100_FIRST, 1555, **_A100_RATES)

_BY_NAME: dict[str, Ceilings] = {
    # Pascal: no Tensor Cores.
    "GeForce GTX 1080 Ti": Ceilings("NVIDIA Turing GPU Architecture whitepaper (WP-09183), table 1", 484, fp32=11.3),
    "Tesla P100-PCIE-12GB": Ceilings(_P100_SOURCE, 549, fp64=4.7, fp32=9.3),
    "Tesla P100-PCIE-16GB": Ceilings(_P100_SOURCE, 732, fp64=4.7, fp32=9.3),
    "Tesla P100-SXM2-16GB": Ceilings(_P100_SOURCE, 732, fp64=5.3, fp32=10.6),
    # Volta.
    "Tesla V100-SXM2-16GB": _V100_SXM2,
    "Tesla V100-SXM2-32GB": _V100_SXM2,
    "Tesla V100-PCIE-16GB": _V100_PCIE,
    "Tesla V100-PCIE-32GB": _V100_PCIE,
    "Tesla V100S-PCIE-32GB": _volta(_V100_SOURCE, 1134, 8.2, 16.4, 130),
    "Tesla V100-DGXS-16GB": _V100_DGXS,
    "Tesla V100-DGXS-32GB": _V100_DGXS,
    # Turing. The T4's data sheet says 300 GB/s; its memory's bus and clock, as of all other rows, make 320.
    "Tesla T4": _turing("NVIDIA T4 data sheet (2019); bandwidth of 256 bits at 10 Gbit/s", 320, 8.1, 65, 130),
    "GeForce RTX 2070": _turing(_TURING_SMS, 448, 7.9, 31.5, 126),
    "GeForce RTX 2080": _turing(_TURING_SMS, 448, 10.6, 42.4, 169.6),
    "GeForce RTX 2080 Ti": _turing(_TURING_SOURCE, 616, 14.2, 56.9, 227.7),
    "Quadro RTX 6000": _QUADRO_RTX_6000,
    "Quadro RTX 8000": _QUADRO_RTX_6000,
    # Ampere, GA100.
    "A100-PCIE-40GB": _A100_40,
    "A100-SXM4-40GB": _A100_40,
    "A100 80GB PCIe": _data_center(_A100_SOURCE, 1935, **_A100_RATES),
    "A100-SXM4-80GB": _data_center(_A100_SOURCE, 2039, **_A100_RATES),
    "A30": _data_center(
        "NVIDIA A30 Tensor Core GPU data sheet; equal to 56 SMs at 1,440 MHz and 3,072 bits at 2.43 Gbit/s",
        933, fp64=5.2, fp64_tensor=10.3, fp32=10.3, tf32=82, fp16=165, int8=330,
    ),
    # Ampere, GA102 and below.
    "A10": _ampere("NVIDIA A10 Tensor Core GPU data sheet", 600, 31.2, 62.5, 125, 250),
    "A10G": _ampere("NVIDIA A10G data sheet, as Amazon Web Services hands it out", 600, 35, 35, 70, None),
    "A40": _ampere("NVIDIA A40 data sheet", 696, 37.4, 74.8, 149.7, 299.3),
    "RTX A4000": _ampere("RTX A4000 " + _RTX_A, 448, 19.2, 38.3, 76.7, 153.4),
    "RTX A5000": _ampere("RTX A5000 " + _RTX_A, 768, 27.8, 55.5, 111.1, 222.2),
    "RTX A6000": _ampere(_GA102, 768, 38.7, 77.4, 154.8, 309.7),
    "GeForce RTX 3060": _ampere(_GEFORCE_30 + "; 12 GB", 360, 12.7, 12.7, 25.5, 102),
    "GeForce RTX 3060 Ti": _ampere(_GEFORCE_30 + "; GDDR6", 448, 16.2, 16.2, 32.4, 129.6),
    "GeForce RTX 3070": _ampere(_GA102, 448, 20.3, 20.3, 40.6, 162.6),
    "GeForce RTX 3070 Ti": _ampere(_GEFORCE_30, 608, 21.7, 21.7, 43.5, 174),
    "GeForce RTX 3080": _ampere(_GA102 + "; 10 GB", 760, 29.8, 29.8, 59.5, 238),
    "GeForce RTX 3080 Ti": _ampere(_GEFORCE_30, 912, 34.1, 34.1, 68.2, 272.8),
    "GeForce RTX 3090": _ampere(_GA102, 936, 35.6, 35.6, 71, 284),
    "GeForce RTX 3090 Ti": _ampere(_ADA_SOURCE, 1008, 40, 40, 80, 320),
    # Ada.
    "L4": _ada("NVIDIA L4 Tensor Core GPU data sheet", 300, 30.3, 60, 121, 242.5, 242.5),
    "L40": _ada("NVIDIA L40 GPU data sheet", 864, 90.5, 90.5, 181, 362, 362),
    # The L40S sheet's dense FP16, 362, is neither half of its sparse 733 nor what 142 SMs do at 2,520 MHz.
    "L40S": _ada("NVIDIA L40S GPU data sheet; FP16 is half of its sparse rate", 864, 91.6, 183, 366.5, 733, 733),
    "RTX 6000 Ada Generation": _ada(_BLACKWELL_PRO, 960, 91.1, 182.1, 364.2, 728.5, 728.5),
    "GeForce RTX 4060": _ada(_GEFORCE_40, 272, 15.1, 15.1, 30.2, 60.5, 120.9),
    "GeForce RTX 4060 Ti": _ada(_GEFORCE_40, 288, 22.1, 22.1, 44.1, 88.3, 176.5),
    "GeForce RTX 4070": _ada(_GEFORCE_40 + "; GDDR6X", 504, 29.1, 29.1, 58.3, 116.6, 233.2),
    "GeForce RTX 4070 SUPER": _ada(_GEFORCE_40, 504, 35.5, 35.5, 71, 141.9, 283.9),
    "GeForce RTX 4070 Ti": _ada(_GEFORCE_40, 504, 40.1, 40.1, 80.2, 160.4, 320.7),
    "GeForce RTX 4070 Ti SUPER": _ada(_GEFORCE_40, 672, 44.1, 44.1, 88.2, 176.4, 352.8),
    "GeForce RTX 4080": _ada(_ADA_SOURCE, 716.8, 48.7, 48.7, 97.5, 194.9, 389.9),
    "GeForce RTX 4080 SUPER": _ada(_GEFORCE_40, 736, 52.2, 52.2, 104.4, 208.9, 417.8),
    "GeForce RTX 4090": _ada(_ADA_SOURCE, 1008, 82.6, 82.6, 165.2, 330.3, 660.6),
    # Hopper.
    "H20": Ceilings(
        "NVIDIA's figures of H20 as the press gave them (2024); 96 GB",
        4000, fp64=1, fp32=44, tf32=74, fp16=148, bf16=148, fp8=296, int8=296,
    ),
    "H100 PCIe": _data_center(
        _H100_SOURCE, 2000, fp64=26, fp64_tensor=51, fp32=51, tf32=378, fp16=756.5, int8=1513, fp8=1513
    ),
    "H100 80GB HBM3": _data_center(_H100_SOURCE, 3350, **_H100_SXM_RATES),
    "H100 NVL": _data_center(_H100_SOURCE + "; FP64 and FP32 as H200 NVL", 3900, **_NVL_RATES),
    "H200": _data_center(_H200_SOURCE, 4800, **_H100_SXM_RATES),
    "H200 NVL": _data_center(_H200_SOURCE, 4800, **_NVL_RATES),
    "GH200 480GB": _data_center(_GH200_SOURCE + ", 96 GB of HBM3", 4000, **_H100_SXM_RATES),
    "GH200 144G HBM3e": _data_center(_GH200_SOURCE + ", 144 GB of HBM3e", 4900, **_H100_SXM_RATES),
    # Blackwell, data center. HGX figures are for eight GPUs, those of NVL72 for 72.
    "B200": _data_center(
        "NVIDIA HGX B200 specifications; bandwidth of the NVIDIA Blackwell data sheet (2025)",
        7700, fp64=37, fp64_tensor=37, fp32=75, tf32=1125, fp16=2250, int8=4500, fp8=4500,
    ),
    "GB200": _data_center(
        "NVIDIA GB200 NVL72 specifications", 8000,
        fp64=40, fp64_tensor=40, fp32=80, tf32=1250, fp16=2500, int8=5000, fp8=5000,
    ),
    "B300 SXM6 AC": _data_center(
        "NVIDIA HGX B300 specifications", 8000,
        fp64=1.25, fp64_tensor=1.25, fp32=75, tf32=1125, fp16=2250, int8=None, fp8=4500,
    ),
    "GB300": Ceilings(
        "NVIDIA GB300 NVL72 specifications", 8000, fp32=80, tf32=1250, fp16=2500, bf16=2500, fp8=5000
    ),
    # Blackwell, workstation and GeForce.
    "RTX PRO 6000 Blackwell Workstation Edition": _ada(_BLACKWELL_PRO, 1792, 126, 251.9, 503.8, 1007.6, 1007.6),
    "RTX PRO 6000 Blackwell Max-Q Workstation Edition": _ada(
        _BLACKWELL_PRO + " (FP32, FP4 and boost clock; the others by its rates per SM)",
        1792, 109.7, 219.5, 438.9, 877.9, 877.9,
    ),
    # NVIDIA does not say whether this one's Tensor Core rates are dense.
    "RTX PRO 6000 Blackwell Server Edition": Ceilings(
        "NVIDIA RTX PRO 6000 Blackwell Server Edition specifications", 1597, fp32=120
    ),
    "GeForce RTX 5060 Ti": _ada(_GEFORCE_50, 448, 23.7, 23.7, 47.4, 94.8, 189.6),
    "GeForce RTX 5070": _ada(_BLACKWELL_RTX, 672, 30.9, 30.9, 61.7, 123.5, 246.9),
    "GeForce RTX 5070 Ti": _ada(_GEFORCE_50, 896, 43.9, 43.9, 87.9, 175.8, 351.5),
    "GeForce RTX 5080": _ada(_GEFORCE_50, 960, 56.3, 56.3, 112.6, 225.1, 450.2),
    "GeForce RTX 5090": _ada(_BLACKWELL_RTX, 1792, 104.8, 104.8, 209.5, 419, 838),
}  # fmt: skip
"""By device name without the leading "NVIDIA ". MIG slices have names of their own and are not here."""
